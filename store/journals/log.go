package journals

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
)

// Log has the records of one journal that are pending. Its methods may be called concurrently, also
// by a medium that holds a lock of its own. Queue may lock too, but must not call the Log.
type Log struct {
	ID    store.ChunkID
	Epoch int64
	Queue Queue
	// Committed reports to the owner, until Shut.
	Committed func(store.Commit)

	mu       sync.Mutex
	active   frame.Pending // records that the medium has not taken
	final    error         // reason why nothing can be appended any more; nil: it can
	queued   bool          // the queue has the journal
	appended int64         // records since Open
	durable  int64
	attempts int64 // to write records; the last one may be under way
	waiting  []flush

	// reporting guards the fields below and the calls of Committed. It is locked before mu.
	reporting      sync.Mutex
	lastRefusal    string // as reported last; empty after a success
	fencedReported bool
	closed         bool
}

// Queue is the group commit of a medium, for one journal.
type Queue interface {
	// Add requests that the journal's records are written.
	Add()
	// Force requests that they are written at once.
	Force()
	// Buffer returns memory for records; nil: there is none to use again.
	Buffer() []byte
	// Drop returns that of records that are not written.
	Drop(frames []byte)
}

// flush is a caller that waits for the first target records.
type flush struct {
	target  int64
	attempt int64 // the last one that began before
	done    chan error
}

// Append adds a record, and returns the size of its frame.
func (l *Log) Append(r *store.Record) (size int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.final != nil {
		return 0, l.final
	}
	if l.active.Frames == nil {
		l.active.Frames = l.Queue.Buffer()
	}
	before := len(l.active.Frames)
	l.active.Add(l.Epoch, r)
	l.appended++
	l.enqueue()
	return len(l.active.Frames) - before, nil
}

// enqueue requests a commit. mu is held.
func (l *Log) enqueue() {
	if !l.queued {
		l.queued = true
		l.Queue.Add()
	}
}

// Usable returns the reason why nothing can be appended any more, if there is one.
func (l *Log) Usable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.final
}

// Flush implements [store.Journal].
func (l *Log) Flush(ctx context.Context) error {
	if err := l.Wait(ctx); err != nil {
		return l.Wrap("flush", err)
	}
	return nil
}

// Wait waits until all records so far are durable, or can't become durable.
func (l *Log) Wait(ctx context.Context) error {
	l.mu.Lock()
	if l.durable == l.appended || l.final != nil {
		defer l.mu.Unlock()
		return l.final
	}
	f := flush{target: l.appended, attempt: l.attempts, done: make(chan error, 1)}
	l.waiting = append(l.waiting, f)
	l.mu.Unlock()

	l.Queue.Force()
	select {
	case err := <-f.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Fence ends the journal because a newer claim has opened the chunk in this process. The next round
// of the queue notifies its owner.
func (l *Log) Fence() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.final == nil {
		l.final = store.ErrFenced
		l.enqueue()
	}
}

// Take returns the records that the medium has not taken yet, and the number of records up to
// there. It returns none if they have more than room bytes, and reports that as more. final is the
// reason why they are not to be written. Unless the queue keeps the journal, to commit it again
// after this attempt, the next record adds it.
func (l *Log) Take(room int, keep bool) (
	p frame.Pending, target int64, more bool, final error,
) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.final == nil && len(l.active.Frames) > room {
		return frame.Pending{}, 0, true, nil
	}
	l.attempts++
	l.queued = keep
	p, l.active = l.active, frame.Pending{}
	if l.final != nil {
		l.Queue.Drop(p.Frames)
		p = frame.Pending{}
	}
	return p, l.appended, false, l.final
}

// Again adds a journal that the queue has kept once more.
func (l *Log) Again() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queued = false
	l.enqueue()
}

// Proceed ends a successful attempt for which the queue has kept the journal: it adds the journal
// again if more records were appended meanwhile. It reports whether the journal was fenced.
func (l *Log) Proceed() (fenced bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queued = false
	if l.final == nil && len(l.active.Frames) > 0 {
		l.enqueue()
		if len(l.waiting) > 0 {
			l.Queue.Force()
		}
	}
	return errors.Is(l.final, store.ErrFenced)
}

// Succeed reports records that are durable now, and ends the waits for them.
func (l *Log) Succeed(target int64, sum store.Commit) {
	l.reporting.Lock()
	defer l.reporting.Unlock()
	l.lastRefusal = ""
	if !l.closed && sum.Records > 0 {
		l.Committed(sum)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.durable = max(l.durable, target)
	l.resolve(func(f flush) (error, bool) { return nil, f.target <= l.durable })
}

// Refuse reports, once, that the medium refuses records. It ends the waits that began before the
// last attempt. The others, which may have begun after the medium recovered, have requested another
// one; with all it ends them too.
func (l *Log) Refuse(err error, all bool) {
	l.reporting.Lock()
	defer l.reporting.Unlock()
	if reason := err.Error(); !l.closed && reason != l.lastRefusal {
		l.lastRefusal = reason
		l.Committed(store.Commit{Err: l.Wrap("commit", err)})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resolve(func(f flush) (error, bool) { return err, all || f.attempt < l.attempts })
}

// Fenced ends the journal because its chunk has a newer claim, and reports that once.
func (l *Log) Fenced() {
	l.reporting.Lock()
	defer l.reporting.Unlock()
	if l.closed {
		return
	}
	l.end(store.ErrFenced)
	if !l.fencedReported {
		l.fencedReported = true
		l.Committed(store.Commit{Err: l.Wrap("commit", store.ErrFenced)})
	}
}

// Shut ends the journal for good. It returns false if it had ended so before.
func (l *Log) Shut() bool {
	l.reporting.Lock()
	defer l.reporting.Unlock()
	if l.closed {
		return false
	}
	l.closed = true
	l.end(ErrClosed)
	return true
}

// end drops the records that the medium has not taken, and accepts no more.
func (l *Log) end(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.final, l.queued = reason, false
	l.Queue.Drop(l.active.Frames)
	l.active = frame.Pending{}
	l.resolve(func(flush) (error, bool) { return reason, true })
}

// resolve ends the waits for which result returns true, with its error. mu is held.
func (l *Log) resolve(result func(flush) (error, bool)) {
	kept := l.waiting[:0]
	for _, f := range l.waiting {
		if err, ok := result(f); ok {
			f.done <- err
		} else {
			kept = append(kept, f)
		}
	}
	clear(l.waiting[len(kept):])
	l.waiting = kept
}

// Wrap adds to an error what was done with which journal.
func (l *Log) Wrap(operation string, err error) error {
	return fmt.Errorf("%s journal %d of batch %s: %w", operation, l.ID.Index, l.ID.Batch, err)
}
