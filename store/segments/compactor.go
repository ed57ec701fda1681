package segments

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidefill/tidefill/store"
)

const (
	// fewest is the least number of segments that are compacted because of their size.
	fewest = 4
	// adoptRanges is the number of ranges from which a journal that another process has left is
	// compacted.
	adoptRanges = 64
	// parallelReads is the number of segments that a compaction reads at once.
	parallelReads = 4
	// retryCompaction is the time until a failed compaction is tried again.
	retryCompaction = 10 * time.Second
)

// compactor joins the segments that this process has written, so that a journal is read with few
// requests. Those of a level are joined into one of the next level, so each byte is written a few
// times at most.
type compactor struct {
	js   *Journals
	wake chan struct{}

	mu      sync.Mutex
	levels  [][]entry
	adopted [][]Range
}

// entry is a segment that may be compacted.
type entry struct {
	bytes  int64
	ranges []Range
}

func newCompactor(js *Journals) *compactor {
	return &compactor{js: js, wake: make(chan struct{}, 1)}
}

func (c *compactor) enabled() bool { return c.js.opts.CompactCount > 0 }

// written adds a segment that was registered.
func (c *compactor) written(_ Key, bytes int64, ranges []Range) {
	if c.enabled() {
		c.add(0, entry{bytes, ranges})
	}
}

func (c *compactor) add(level int, e entry) {
	if len(e.ranges) == 0 || e.bytes > c.js.opts.CompactBytes/4 {
		return
	}
	c.mu.Lock()
	for len(c.levels) <= level {
		c.levels = append(c.levels, nil)
	}
	c.levels[level] = append(c.levels[level], e)
	c.mu.Unlock()
	signal(c.wake)
}

// adopt adds a journal that was opened, if it has many ranges.
func (c *compactor) adopt(ranges []Range) {
	if !c.enabled() || len(ranges) < adoptRanges {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var group []Range
	size := int64(0)
	for _, g := range ranges {
		if size+g.Length > c.js.opts.CompactBytes {
			c.adopted = append(c.adopted, group)
			group, size = nil, 0
		}
		group = append(group, g)
		size += g.Length
	}
	c.adopted = append(c.adopted, group)
	signal(c.wake)
}

// run compacts until ctx ends.
func (c *compactor) run(ctx context.Context) {
	for {
		level, group := c.pick()
		if group == nil {
			select {
			case <-c.wake:
			case <-ctx.Done():
				return
			}
			continue
		}
		compacted, err := c.compact(ctx, group)
		if err == nil {
			c.add(level+1, compacted)
			continue
		}
		if ctx.Err() != nil {
			return
		}
		c.js.opts.Logger.WarnContext(ctx, "could not compact journals; trying again later",
			"error", err)
		c.mu.Lock()
		c.adopted = append(c.adopted, group)
		c.mu.Unlock()
		select {
		case <-time.After(retryCompaction):
		case <-ctx.Done():
			return
		}
	}
}

// pick removes the next group from the lists and returns its ranges; nil: there is none yet.
func (c *compactor) pick() (level int, group []Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.adopted) > 0 {
		group = c.adopted[0]
		c.adopted = c.adopted[1:]
		if len(group) > 1 {
			return 0, group
		}
	}
	for level := range c.levels {
		for {
			n, due := c.due(c.levels[level])
			if n == 0 {
				break
			}
			taken := c.levels[level][:n]
			c.levels[level] = slices.Clone(c.levels[level][n:])
			if !due {
				continue // too few for their size
			}
			for _, e := range taken {
				group = append(group, e.ranges...)
			}
			return level, group
		}
	}
	return 0, nil
}

// due returns the number of the first segments that form a group, and whether they should be
// compacted. 0: there are not enough yet.
func (c *compactor) due(list []entry) (n int, due bool) {
	size := int64(0)
	for n < len(list) && n < c.js.opts.CompactCount {
		if size += list[n].bytes; size > c.js.opts.CompactBytes {
			return n, n >= fewest
		}
		n++
	}
	if n == c.js.opts.CompactCount {
		return n, true
	}
	return 0, false
}

// compact writes the bytes of ranges into one segment, those of each chunk together, and has it
// take their place.
func (c *compactor) compact(ctx context.Context, group []Range) (e entry, err error) {
	ctx, cancel := context.WithTimeout(ctx, 4*c.js.opts.CommitTimeout)
	defer cancel()
	content, err := c.read(ctx, group)
	if err != nil {
		return e, err
	}
	r := Replacement{Key: c.js.keys.next()}
	pieces := make([][]byte, 0, len(group))
	slices.SortFunc(group, func(a, b Range) int {
		return cmp.Or(cmp.Compare(a.Chunk.Batch, b.Chunk.Batch),
			cmp.Compare(a.Chunk.Index, b.Chunk.Index), cmp.Compare(a.At, b.At))
	})
	old := map[Key]bool{}
	for _, g := range group {
		data := content[pieceID{g.Key, g.Offset}]
		if data == nil {
			continue // deleted: the range was removed or replaced
		}
		if n := len(r.Ranges) - 1; n >= 0 && r.Ranges[n].Chunk == g.Chunk &&
			r.Ranges[n].End() == g.At {
			r.Ranges[n].Length += g.Length
		} else {
			r.Ranges = append(r.Ranges, Range{Chunk: g.Chunk, Key: r.Key, Offset: r.Bytes,
				Length: g.Length, At: g.At})
		}
		pieces = append(pieces, data)
		r.Bytes += g.Length
		old[g.Key] = true
	}
	if len(r.Ranges) == len(pieces) {
		return e, nil // readers would not gain
	}
	for key := range old {
		r.Old = append(r.Old, key)
	}
	slices.SortFunc(r.Old, Key.Compare)
	err = c.js.objects.Put(ctx, r.Key.String(), r.Bytes, func() io.Reader {
		readers := make([]io.Reader, len(pieces))
		for i, p := range pieces {
			readers[i] = bytes.NewReader(p)
		}
		return io.MultiReader(readers...)
	})
	if err != nil {
		return e, err
	}
	replaced, err := c.js.registry.Replace(ctx, r)
	if errors.Is(err, ErrSwept) {
		err = errors.Join(err, c.js.keys.refresh(ctx, c.js.registry))
	}
	return entry{r.Bytes, replaced}, err
}

// read returns the bytes of the ranges, those of each object with one request. Ranges of deleted
// objects are absent.
func (c *compactor) read(ctx context.Context, group []Range) (map[pieceID][]byte, error) {
	byKey := map[Key][]Range{}
	for _, g := range group {
		byKey[g.Key] = append(byKey[g.Key], g)
	}
	var mu sync.Mutex
	content := make(map[pieceID][]byte, len(group))
	var reads errgroup.Group
	reads.SetLimit(parallelReads)
	for key, ranges := range byKey {
		reads.Go(func() error {
			from, to := ranges[0].Offset, int64(0)
			for _, g := range ranges {
				from, to = min(from, g.Offset), max(to, g.Offset+g.Length)
			}
			data := make([]byte, to-from)
			err := c.js.objects.ReadAt(ctx, key.String(), data, from)
			if errors.Is(err, store.ErrNotFound) {
				return nil
			} else if err != nil {
				return fmt.Errorf("read segment %v: %w", key, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, g := range ranges {
				content[pieceID{key, g.Offset}] = data[g.Offset-from:][:g.Length:g.Length]
			}
			return nil
		})
	}
	return content, reads.Wait()
}
