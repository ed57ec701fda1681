package segments

import (
	"context"
	"fmt"
	"sync"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
)

// journal implements [store.Journal]. Its mutex is locked before the committer's.
type journal struct {
	js        *Journals
	id        store.ChunkID
	epoch     int64
	committed func(store.Commit)

	mu       sync.Mutex
	active   frame.Pending // records that no segment has
	final    error         // reason why nothing can be appended any more; nil: it can
	queued   bool          // the committer has the journal in its list
	appended int64         // records since Open
	durable  int64
	waiting  []flush

	// reporting guards the fields below and the calls of committed. It is locked before mu.
	reporting      sync.Mutex
	lastRefusal    string // as reported last; empty after a success
	fencedReported bool
	closed         bool
}

var _ store.Journal = (*journal)(nil)

// flush is a caller that waits for the first target records.
type flush struct {
	target int64
	done   chan error
}

// Append implements [store.Journal].
func (j *journal) Append(ctx context.Context, r store.Record) error {
	if err := j.append(ctx, &r); err != nil {
		return j.wrap("append to", err)
	}
	return nil
}

func (j *journal) append(ctx context.Context, r *store.Record) error {
	result := frame.ResultSize(r)
	if result > frame.MaxResult {
		return frame.ErrTooLarge
	}
	size := frame.EmptySize + result
	for {
		full := j.js.queue.take(size)
		if full == nil {
			break
		}
		if err := j.usable(); err != nil {
			return err
		}
		j.js.commits.force()
		if err := wait(ctx, full); err != nil {
			return err
		}
	}
	j.mu.Lock()
	if err := j.final; err != nil {
		j.mu.Unlock()
		j.js.queue.free(size)
		return err
	}
	j.active.Add(j.epoch, r)
	j.appended++
	j.enqueue()
	j.mu.Unlock()
	j.js.commits.count(1, int(size))
	return nil
}

// usable returns the reason why nothing can be appended any more, if there is one.
func (j *journal) usable() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.final
}

// enqueue requests a commit. mu is held.
func (j *journal) enqueue() {
	if !j.queued {
		j.queued = true
		j.js.commits.add(j)
	}
}

// Flush implements [store.Journal].
func (j *journal) Flush(ctx context.Context) error {
	if err := j.flush(ctx); err != nil {
		return j.wrap("flush", err)
	}
	return nil
}

func (j *journal) flush(ctx context.Context) error {
	j.mu.Lock()
	if j.durable == j.appended || j.final != nil {
		defer j.mu.Unlock()
		return j.final
	}
	f := flush{target: j.appended, done: make(chan error, 1)}
	j.waiting = append(j.waiting, f)
	j.mu.Unlock()

	j.js.commits.force()
	select {
	case err := <-f.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close implements [store.Journal].
func (j *journal) Close(ctx context.Context) error {
	err := j.flush(ctx)
	j.js.forget(j)
	j.reporting.Lock()
	defer j.reporting.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	j.end(errClosed)
	if err != nil {
		return j.wrap("close", err)
	}
	return nil
}

// fence ends the journal because a newer claim has opened the chunk in this process. The next round
// notifies its owner.
func (j *journal) fence() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.final == nil {
		j.final = store.ErrFenced
		j.enqueue()
	}
}

// collect returns the records that no segment has, and the number of records up to there. It
// returns none if they have more than room bytes, and reports that as more.
func (j *journal) collect(room int) (p frame.Pending, target int64, more bool, final error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.final == nil && len(j.active.Frames) > room {
		return frame.Pending{}, 0, true, nil
	}
	j.queued = false
	p, j.active = j.active, frame.Pending{}
	if j.final != nil {
		j.js.queue.free(int64(len(p.Frames)))
		p = frame.Pending{}
	}
	return p, j.appended, false, j.final
}

// succeed ends the waits for records that are durable now, and reports them. Closed journals report
// nothing.
func (j *journal) succeed(target int64, sum store.Commit) {
	j.reporting.Lock()
	defer j.reporting.Unlock()
	j.lastRefusal = ""
	if !j.closed && sum.Records > 0 {
		j.committed(sum)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.durable = max(j.durable, target)
	j.resolve(func(f flush) (error, bool) { return nil, f.target <= j.durable })
}

// refuse reports that the medium refuses records, and ends all waits.
func (j *journal) refuse(err error) {
	j.reporting.Lock()
	defer j.reporting.Unlock()
	if reason := err.Error(); !j.closed && reason != j.lastRefusal {
		j.lastRefusal = reason
		j.committed(store.Commit{Err: j.wrap("commit", err)})
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.resolve(func(flush) (error, bool) { return err, true })
}

// fenced ends the journal because its chunk has a newer claim, and reports that once.
func (j *journal) fenced() {
	j.reporting.Lock()
	defer j.reporting.Unlock()
	if !j.closed && !j.fencedReported {
		j.fencedReported = true
		j.committed(store.Commit{Err: j.wrap("commit", store.ErrFenced)})
	}
	if !j.closed {
		j.end(store.ErrFenced)
	}
}

// end drops the records that no segment has, and accepts no more.
func (j *journal) end(reason error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.final = reason
	j.js.queue.free(int64(len(j.active.Frames)))
	j.active = frame.Pending{}
	j.resolve(func(flush) (error, bool) { return reason, true })
}

// resolve ends the waits for which result returns true, with its error. mu is held.
func (j *journal) resolve(result func(flush) (error, bool)) {
	kept := j.waiting[:0]
	for _, f := range j.waiting {
		if err, ok := result(f); ok {
			f.done <- err
		} else {
			kept = append(kept, f)
		}
	}
	clear(j.waiting[len(kept):])
	j.waiting = kept
}

func (j *journal) wrap(operation string, err error) error {
	return fmt.Errorf("%s journal %d of batch %s: %w", operation, j.id.Index, j.id.Batch, err)
}
