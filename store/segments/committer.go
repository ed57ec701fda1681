package segments

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
)

// committer writes and registers segments, one at a time.
type committer struct {
	js   *Journals
	opts Options

	mu      sync.Mutex
	fresh   []*journal // have records that no segment has
	since   time.Time  // when the first of them got one
	records int        // of fresh
	bytes   int
	forced  bool      // a caller waits
	next    time.Time // the earliest start of the next round

	changed chan struct{} // the next round may be due earlier

	stuck *segment // was refused; only the goroutine uses it
}

// segment is what a round writes.
type segment struct {
	key     Key
	written bool // the object is complete
	parts   []part
	bytes   int
	records int
}

// part holds the records of one journal in a segment.
type part struct {
	journal *journal
	pending frame.Pending
	target  int64 // number of the journal's records up to here
}

func newCommitter(js *Journals) *committer {
	return &committer{js: js, opts: js.opts, next: time.Now(), changed: make(chan struct{}, 1)}
}

// run starts rounds until ctx ends.
func (c *committer) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		if at := c.nextRound(); !at.IsZero() {
			timer.Reset(time.Until(at))
			due = timer.C
		}
		select {
		case <-c.changed:
		case <-due:
			c.round(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// nextRound returns the time at which the next round is due; zero: there is nothing to write.
func (c *committer) nextRound() (at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.forced || c.records >= c.opts.CommitRecords || c.bytes >= c.opts.CommitBytes:
		return c.next
	case c.stuck != nil:
		return c.next
	case len(c.fresh) == 0:
		return time.Time{}
	case c.records < c.opts.CommitFew:
		at = c.since.Add(c.opts.CommitFewAfter)
	default:
		at = c.since.Add(c.opts.CommitAfter)
	}
	if at.Before(c.next) {
		return c.next
	}
	return at
}

// add puts a journal into the next round. The journal's mutex is held.
func (c *committer) add(j *journal) {
	c.mu.Lock()
	first := len(c.fresh) == 0
	if first {
		c.since = time.Now()
	}
	c.fresh = append(c.fresh, j)
	c.mu.Unlock()
	if first {
		signal(c.changed)
	}
}

// count adds appended records, and wakes the goroutine if they change when the next round is due.
func (c *committer) count(records, bytes int) {
	c.mu.Lock()
	c.records += records
	c.bytes += bytes
	reached := func(is, added, limit int) bool { return is-added < limit && is >= limit }
	due := reached(c.records, records, c.opts.CommitRecords) ||
		reached(c.bytes, bytes, c.opts.CommitBytes) ||
		reached(c.records, records, c.opts.CommitFew)
	c.mu.Unlock()
	if due {
		signal(c.changed)
	}
}

// force starts a round as soon as the gap to the last one permits.
func (c *committer) force() {
	c.mu.Lock()
	c.forced = true
	c.mu.Unlock()
	signal(c.changed)
}

// round writes and registers one segment: the one that was refused last, or one with the records
// that wait.
func (c *committer) round(ctx context.Context) {
	c.mu.Lock()
	c.forced = false
	c.next = time.Now().Add(c.opts.CommitGap)
	c.mu.Unlock()

	s := c.stuck
	c.stuck = nil
	if s == nil {
		s = c.compose()
	} else {
		s.dropClosed(c.js)
	}
	if len(s.parts) == 0 {
		return
	}
	registered, err := c.commit(ctx, s)
	if err != nil {
		c.refused(s, err)
		return
	}
	c.finish(s, registered)
}

// compose collects what the journals have, up to the limit of a segment.
func (c *committer) compose() *segment {
	c.mu.Lock()
	due := c.fresh
	c.fresh = nil
	c.records, c.bytes = 0, 0
	c.mu.Unlock()

	s := &segment{}
	var ended []*journal
	for i, j := range due {
		room := c.opts.SegmentBytes - s.bytes
		if s.bytes == 0 {
			room = math.MaxInt // one journal's records fit in any case
		}
		p, target, more, final := j.Take(room, false)
		switch {
		case more:
			c.putBack(due[i:])
			c.notify(ended)
			return s
		case final != nil:
			ended = append(ended, j)
		case p.Sum.Records > 0:
			s.parts = append(s.parts, part{j, p, target})
			s.bytes += len(p.Frames)
			s.records += p.Sum.Records
		}
	}
	c.notify(ended)
	return s
}

// putBack leaves journals to the next round, which starts at once.
func (c *committer) putBack(left []*journal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.fresh) == 0 {
		c.since = time.Now()
	}
	c.fresh = append(c.fresh, left...)
	c.forced = true
}

func (c *committer) notify(ended []*journal) {
	for _, j := range ended {
		if errors.Is(j.Usable(), store.ErrFenced) {
			j.Fenced()
		}
	}
}

// dropClosed removes the parts of journals that were closed or fenced meanwhile. If there are any,
// the object is written again, under another key.
func (s *segment) dropClosed(js *Journals) {
	kept := s.parts[:0]
	for _, p := range s.parts {
		if final := p.journal.Usable(); final != nil {
			s.bytes -= len(p.pending.Frames)
			s.records -= p.pending.Sum.Records
			js.queue.free(int64(len(p.pending.Frames)))
			if errors.Is(final, store.ErrFenced) {
				p.journal.Fenced()
			}
			continue
		}
		kept = append(kept, p)
	}
	if len(kept) < len(s.parts) {
		clear(s.parts[len(kept):])
		s.parts, s.key, s.written = kept, Key{}, false
	}
}

// keyTries is the number of keys that one attempt uses. The second one follows a key that was swept
// or is registered already.
const keyTries = 3

// commit writes the object and registers it.
func (c *committer) commit(ctx context.Context, s *segment) (done Registered, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.opts.CommitTimeout, fmt.Errorf(
		"%w: a segment was not written and registered within %v", store.ErrUnavailable,
		c.opts.CommitTimeout))
	defer cancel()
	for range keyTries {
		done, err = c.attempt(ctx, s)
		if !errors.Is(err, ErrSwept) && !errors.Is(err, store.ErrExists) {
			break
		}
		s.key, s.written = Key{}, false
		if refreshErr := c.js.keys.refresh(ctx, c.js.registry); refreshErr != nil {
			return done, refreshErr
		}
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return done, err
}

func (c *committer) attempt(ctx context.Context, s *segment) (done Registered, err error) {
	a := Attempt{Records: s.records, Bytes: s.bytes}
	defer func() {
		a.Err = err
		c.opts.Observe(a)
	}()
	if s.key == (Key{}) {
		s.key = c.js.keys.next()
	}
	start := time.Now()
	if !s.written {
		err = c.js.objects.Put(ctx, s.key.String(), int64(s.bytes), s.content)
		a.Put = time.Since(start)
		if err != nil {
			return done, err
		}
		s.written = true
	}
	start = time.Now()
	done, err = c.js.registry.Register(ctx, s.describe())
	a.Register = time.Since(start)
	if err == nil {
		c.js.keys.learn(done.Now)
	}
	return done, err
}

// content reads the object.
func (s *segment) content() io.Reader {
	readers := make([]io.Reader, len(s.parts))
	for i, p := range s.parts {
		readers[i] = bytes.NewReader(p.pending.Frames)
	}
	return io.MultiReader(readers...)
}

// describe lists the parts for the registry.
func (s *segment) describe() Segment {
	d := Segment{Key: s.key, Bytes: int64(s.bytes), Parts: make([]Part, len(s.parts))}
	offset := int64(0)
	for i, p := range s.parts {
		length := int64(len(p.pending.Frames))
		d.Parts[i] = Part{Chunk: p.journal.ID, Epoch: p.journal.Epoch, Offset: offset,
			Length: length}
		offset += length
	}
	return d
}

// refused keeps a segment for the next try and reports the reason, also to the journals that have
// newer records.
func (c *committer) refused(s *segment, err error) {
	c.stuck = s
	c.mu.Lock()
	c.next = time.Now().Add(c.opts.RetryAfter)
	fresh := append([]*journal(nil), c.fresh...)
	c.mu.Unlock()
	notified := make(map[*journal]bool, len(s.parts))
	for _, p := range s.parts {
		notified[p.journal] = true
		p.journal.Refuse(err, true)
	}
	for _, j := range fresh {
		if !notified[j] && j.Usable() == nil {
			j.Refuse(err, true)
		}
	}
}

// finish reports the outcome of a registered segment.
func (c *committer) finish(s *segment, done Registered) {
	fenced := make(map[store.ChunkID]bool, len(done.Fenced))
	for _, id := range done.Fenced {
		fenced[id] = true
	}
	for _, p := range s.parts {
		c.js.queue.free(int64(len(p.pending.Frames)))
		if fenced[p.journal.ID] {
			p.journal.Fenced()
		} else {
			p.journal.Succeed(p.target, p.pending.Sum)
		}
	}
	c.js.compacts.written(s.key, int64(s.bytes), done.Ranges)
}

// signal wakes the receiver of c, at once or when it receives next.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
