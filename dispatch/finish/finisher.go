package finish

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// finishTogether is the time that a complete chunk waits for others, so that a fast pool needs no
// transaction for each. Nothing waits for the first of them: a batch ends with its last chunk.
const finishTogether = 3 * time.Second

// Finisher marks complete chunks done in the store, several in one step. It is safe for concurrent
// use.
type Finisher struct {
	*work.Session
	metadata FinisherStore
	hurried  chan struct{} // capacity 1: do not wait for more chunks

	mu      sync.Mutex
	waiting []*work.Chunk
	running bool // a task works on those that wait
	ending  bool // no chunk waits for others any more
}

// FinisherStore marks chunks done.
type FinisherStore interface {
	FinishChunks(ctx context.Context, o store.Owner, chunks ...store.Chunk) error
}

// NewFinisher returns a finisher that has no chunks.
func NewFinisher(s *work.Session, metadata FinisherStore) *Finisher {
	return &Finisher{Session: s, metadata: metadata, hurried: make(chan struct{}, 1)}
}

// Add marks a complete chunk done soon, in another goroutine, which tries again until the store
// accepts it.
func (f *Finisher) Add(c *work.Chunk) {
	f.mu.Lock()
	f.waiting = append(f.waiting, c)
	begins, ending := !f.running, f.ending
	f.running = true
	f.mu.Unlock()
	if ending || c.Run.WaitsForItsEnd() {
		f.Hurry()
	}
	if begins {
		f.Tasks.Start(f.run)
	}
}

// Hurry has the chunks that wait marked done at once.
func (f *Finisher) Hurry() {
	select {
	case f.hurried <- struct{}{}:
	default:
	}
}

// End has all chunks marked done at once, those too that come later.
func (f *Finisher) End() {
	f.mu.Lock()
	f.ending = true
	f.mu.Unlock()
	f.Hurry()
}

// run marks chunks done until none waits.
func (f *Finisher) run(ctx context.Context) {
	wait := finishTogether
	for {
		select {
		case <-ctx.Done():
		case <-f.hurried:
		case <-time.After(wait):
		}
		f.mu.Lock()
		chunks := f.waiting
		f.waiting = nil
		f.running = len(chunks) > 0 && ctx.Err() == nil
		goOn := f.running
		if wait = finishTogether; f.ending {
			wait = 0
		}
		f.mu.Unlock()
		if !goOn {
			return
		}
		if left := f.round(ctx, chunks); len(left) > 0 {
			f.mu.Lock()
			f.waiting = append(left, f.waiting...)
			f.mu.Unlock()
			wait = work.RetryEvery
		}
	}
}

// round tries to mark chunks done, and returns those that are left to the next try.
func (f *Finisher) round(ctx context.Context, chunks []*work.Chunk) (left []*work.Chunk) {
	left, err := f.Finish(ctx, chunks...)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrFenced):
		f.Lose(err)
		return nil
	case ctx.Err() != nil:
		return nil
	}
	for _, c := range left {
		c.Run.SetBlocked(work.ReasonOf(err))
	}
	f.Log.Warn("could not finish chunks, trying again", "batch_id", left[0].Batch,
		"chunk", left[0].Index, "chunks", len(left), "error", err)
	return left
}

// Finish marks chunks done, whose results are all durable, and has their batches reconciled if they
// may have been the last. After an error it returns those that are not marked.
func (f *Finisher) Finish(
	ctx context.Context, chunks ...*work.Chunk,
) (left []*work.Chunk, err error) {
	var closed []*work.Chunk
	for _, c := range chunks {
		if closeErr := c.Journal.Close(context.WithoutCancel(ctx)); closeErr != nil {
			left = append(left, c)
			err = fmt.Errorf("close journal of chunk %d of %s: %w", c.Index, c.Batch, closeErr)
			continue
		}
		closed = append(closed, c)
	}
	if len(closed) == 0 {
		return left, err
	}
	if markErr := work.MarkDone(closed, func(done []store.Chunk) error {
		return f.metadata.FinishChunks(ctx, f.Owner, done...)
	}); markErr != nil {
		return chunks, markErr
	}
	for _, c := range closed {
		c.Span.Done()
		f.Inbox.Put(work.ChunkFinished{Chunk: c})
	}
	for _, r := range work.RunsOf(closed) {
		f.chunksFinished(r)
	}
	return left, err
}

func (f *Finisher) chunksFinished(r *work.Run) {
	idle, canary, models := r.AfterFinished()
	if canary {
		for _, m := range models {
			f.Inbox.Event(plan.MoreChunks{Key: plan.JobKey{Batch: r.ID, Model: m.Model}})
		}
	}
	if idle {
		f.Batches.Add(r.ID)
	}
}
