package registrytest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/segments"
)

// Memory is a registry in memory, for tests. Its methods hold one mutex, so every one is one step.
type Memory struct {
	now func() time.Time

	mu        sync.Mutex
	processes int64
	chunks    map[store.ChunkID]*chunk
	segments  map[segments.Key]int // ranges in each registered segment
	queue     []queued
	through   segments.Stamp
}

var _ segments.Registry = (*Memory)(nil)

type chunk struct {
	epoch  int64
	ranges []segments.Range // by At
}

func (c *chunk) size() int64 {
	if len(c.ranges) == 0 {
		return 0
	}
	return c.ranges[len(c.ranges)-1].End()
}

type queued struct {
	key segments.Key
	at  segments.Stamp
}

// NewMemory returns an empty registry whose server has the given clock.
func NewMemory(now func() time.Time) *Memory {
	return &Memory{now: now, chunks: map[store.ChunkID]*chunk{}, segments: map[segments.Key]int{}}
}

func (m *Memory) stamp() segments.Stamp { return segments.StampOf(m.now()) }

// Enroll implements [segments.Registry].
func (m *Memory) Enroll(ctx context.Context) (int64, segments.Stamp, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	m.processes++
	return m.processes, m.stamp(), nil
}

// Now implements [segments.Registry].
func (m *Memory) Now(ctx context.Context) (segments.Stamp, error) { return m.stamp(), ctx.Err() }

// Fence implements [segments.Registry].
func (m *Memory) Fence(
	ctx context.Context, fences ...segments.Fence,
) (ranges []segments.Range, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, f := range fences {
		if c := m.chunks[f.Chunk]; c != nil && c.epoch > f.Epoch {
			return nil, fmt.Errorf("chunk %d of batch %s has epoch %d: %w", f.Chunk.Index,
				f.Chunk.Batch, c.epoch, store.ErrFenced)
		}
	}
	for _, f := range fences {
		c := m.chunks[f.Chunk]
		if c == nil {
			c = &chunk{}
			m.chunks[f.Chunk] = c
		}
		c.epoch = f.Epoch
		ranges = append(ranges, c.ranges...)
	}
	return ranges, nil
}

// mayRegister returns the reason why a key is refused. mu is held.
func (m *Memory) mayRegister(key segments.Key) error {
	if key.Stamp <= m.through {
		return fmt.Errorf("register segment %v: %w", key, segments.ErrSwept)
	}
	if m.known(key) {
		return fmt.Errorf("register segment %v: %w", key, store.ErrExists)
	}
	return nil
}

func (m *Memory) known(key segments.Key) bool {
	_, registered := m.segments[key]
	return registered || slices.ContainsFunc(m.queue, func(q queued) bool { return q.key == key })
}

// Register implements [segments.Registry].
func (m *Memory) Register(
	ctx context.Context, s segments.Segment,
) (done segments.Registered, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return done, err
	}
	if err := m.mayRegister(s.Key); err != nil {
		return done, err
	}
	done.Now = m.stamp()
	for _, p := range s.Parts {
		c := m.chunks[p.Chunk]
		if c == nil || c.epoch != p.Epoch {
			done.Fenced = append(done.Fenced, p.Chunk)
			continue
		}
		r := segments.Range{Chunk: p.Chunk, Key: s.Key, Offset: p.Offset, Length: p.Length,
			At: c.size()}
		c.ranges = append(c.ranges, r)
		done.Ranges = append(done.Ranges, r)
	}
	if len(done.Ranges) > 0 {
		m.segments[s.Key] = len(done.Ranges)
	}
	return done, nil
}

// Ranges implements [segments.Registry].
func (m *Memory) Ranges(
	ctx context.Context, chunks ...store.ChunkID,
) (ranges []segments.Range, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range chunks {
		if c := m.chunks[id]; c != nil {
			ranges = append(ranges, c.ranges...)
		}
	}
	return ranges, ctx.Err()
}

// Batches implements [segments.Registry].
func (m *Memory) Batches(ctx context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var batches []string
	for id := range m.chunks {
		if !slices.Contains(batches, id.Batch) {
			batches = append(batches, id.Batch)
		}
	}
	return batches, ctx.Err()
}

// Remove implements [segments.Registry].
func (m *Memory) Remove(ctx context.Context, batch string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	for id, c := range m.chunks {
		if id.Batch == batch {
			delete(m.chunks, id)
			m.release(c.ranges)
		}
	}
	return nil
}

// release drops ranges from their segments, and queues those that have none any more.
func (m *Memory) release(ranges []segments.Range) {
	for _, r := range ranges {
		if m.segments[r.Key]--; m.segments[r.Key] == 0 {
			delete(m.segments, r.Key)
			m.queue = append(m.queue, queued{r.Key, m.stamp()})
		}
	}
}

// Replace implements [segments.Registry].
func (m *Memory) Replace(
	ctx context.Context, r segments.Replacement,
) (done []segments.Range, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := m.mayRegister(r.Key); err != nil {
		return nil, err
	}
	for _, put := range r.Ranges {
		c := m.chunks[put.Chunk]
		if c == nil {
			continue
		}
		within := func(old segments.Range) bool {
			return old.At >= put.At && old.End() <= put.End()
		}
		first := slices.IndexFunc(c.ranges, within)
		if first < 0 {
			continue
		}
		end, length, all := first, int64(0), true
		for ; end < len(c.ranges) && within(c.ranges[end]); end++ {
			length += c.ranges[end].Length
			all = all && slices.Contains(r.Old, c.ranges[end].Key)
		}
		if !all || length != put.Length {
			continue
		}
		put.Key = r.Key
		m.release(c.ranges[first:end])
		c.ranges = slices.Replace(c.ranges, first, end, put)
		done = append(done, put)
	}
	if len(done) > 0 {
		m.segments[r.Key] = len(done)
	}
	return done, nil
}

// AdvanceSweep implements [segments.Registry].
func (m *Memory) AdvanceSweep(ctx context.Context, age time.Duration) (segments.Stamp, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.through = max(m.through, m.stamp().Add(-age))
	return m.through, nil
}

// Unknown implements [segments.Registry].
func (m *Memory) Unknown(ctx context.Context, keys []segments.Key) ([]segments.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var unknown []segments.Key
	for _, key := range keys {
		if !m.known(key) {
			unknown = append(unknown, key)
		}
	}
	return unknown, ctx.Err()
}

// TakeDeletions implements [segments.Registry].
func (m *Memory) TakeDeletions(
	ctx context.Context, wait time.Duration, limit int,
) ([]segments.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.SortStableFunc(m.queue, func(a, b queued) int { return cmp.Compare(a.at, b.at) })
	var due []segments.Key
	for _, q := range m.queue {
		if len(due) < limit && q.key.Stamp <= m.through && q.at <= m.stamp().Add(-wait) {
			due = append(due, q.key)
		}
	}
	return due, ctx.Err()
}

// FinishDeletions implements [segments.Registry].
func (m *Memory) FinishDeletions(ctx context.Context, keys []segments.Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	m.queue = slices.DeleteFunc(m.queue, func(q queued) bool {
		return q.key.Stamp <= m.through && slices.Contains(keys, q.key)
	})
	return nil
}
