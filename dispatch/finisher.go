package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// finishTogether is how long a complete chunk waits for others, so that a fast pool does not need a
// transaction for each. Nothing waits for the first of them: a batch ends with its last chunk.
const finishTogether = 3 * time.Second

// finisher marks complete chunks done in the store, several in one step. It is safe for concurrent
// use.
type finisher struct {
	metadata Metadata
	owner    store.Owner
	log      *slog.Logger
	inbox    *inbox
	lose     context.CancelCauseFunc
	tasks    *tasks
	batches  *queue[string] // to reconcile

	hurried chan struct{} // capacity 1: do not wait for more chunks

	mu      sync.Mutex
	waiting []*chunk
	running bool // a task works on those that wait
	ending  bool // no chunk waits for others any more
}

// add marks a complete chunk done soon, in another goroutine, which tries again until the store
// accepts it.
func (f *finisher) add(c *chunk) {
	f.mu.Lock()
	f.waiting = append(f.waiting, c)
	begins, ending := !f.running, f.ending
	f.running = true
	f.mu.Unlock()
	if ending || c.run.waitsForItsEnd() {
		f.hurry()
	}
	if begins {
		f.tasks.start(f.run)
	}
}

// hurry has the chunks that wait marked done at once.
func (f *finisher) hurry() { wake(f.hurried) }

// end has all chunks marked done at once, those too that come later.
func (f *finisher) end() {
	f.mu.Lock()
	f.ending = true
	f.mu.Unlock()
	f.hurry()
}

// run marks chunks done until none waits.
func (f *finisher) run(ctx context.Context) {
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
			wait = retryEvery
		}
	}
}

// round tries to mark chunks done, and returns those that are left to the next try.
func (f *finisher) round(ctx context.Context, chunks []*chunk) (left []*chunk) {
	left, err := f.finish(ctx, chunks...)
	switch {
	case err == nil:
		return nil
	case isFenced(err):
		f.lose(err)
		return nil
	case ctx.Err() != nil:
		return nil
	}
	for _, c := range left {
		c.run.setBlocked(reasonOf(err))
	}
	f.log.Warn("could not finish chunks, trying again", "batch_id", left[0].Batch,
		"chunk", left[0].Index, "chunks", len(left), "error", err)
	return left
}

// finish marks chunks done, whose results are all durable, and has their batches reconciled if they
// may have been the last. After an error it returns those that are not marked.
func (f *finisher) finish(ctx context.Context, chunks ...*chunk) (left []*chunk, err error) {
	var closed []*chunk
	for _, c := range chunks {
		if closeErr := c.journal.Close(context.WithoutCancel(ctx)); closeErr != nil {
			left = append(left, c)
			err = fmt.Errorf("close journal of chunk %d of %s: %w", c.Index, c.Batch, closeErr)
			continue
		}
		closed = append(closed, c)
	}
	if len(closed) == 0 {
		return left, err
	}
	if markErr := f.markDone(ctx, closed); markErr != nil {
		return chunks, markErr
	}
	for _, c := range closed {
		f.inbox.put(chunkFinished{c})
	}
	for _, r := range runsOf(closed) {
		f.chunksFinished(r)
	}
	return left, err
}

func (f *finisher) chunksFinished(r *run) {
	r.mu.Lock()
	idle, canary := len(r.chunks) == 0, !r.canary.passed
	models := r.batch.Models
	r.mu.Unlock()
	if canary {
		for _, m := range models {
			f.inbox.event(plan.MoreChunks{Key: plan.JobKey{Batch: r.id, Model: m.Model}})
		}
	}
	if idle {
		f.batches.add(r.id)
	}
}

// markDone marks chunks done in the store and in their runs. The results of the runs are not
// counted between the two.
func (f *finisher) markDone(ctx context.Context, chunks []*chunk) error {
	for _, r := range runsOf(chunks) {
		r.finishing.Lock()
		defer r.finishing.Unlock()
	}
	done := make([]store.Chunk, len(chunks))
	for i, c := range chunks {
		c.run.mu.Lock()
		done[i] = c.Chunk
		done[i].Tally = c.tally
		c.run.mu.Unlock()
	}
	if err := f.metadata.FinishChunks(ctx, f.owner, done...); err != nil {
		return err
	}
	for _, c := range chunks {
		r := c.run
		r.mu.Lock()
		delete(r.chunks, c.Index)
		r.live = minus(r.live, c.tally)
		r.done = plus(r.done, c.tally)
		r.mu.Unlock()
	}
	return nil
}

// runsOf returns the runs of chunks, each once, in an order in which their locks can be taken.
func runsOf(chunks []*chunk) (runs []*run) {
	for _, c := range chunks {
		if !slices.Contains(runs, c.run) {
			runs = append(runs, c.run)
		}
	}
	slices.SortFunc(runs, func(a, b *run) int { return strings.Compare(a.id, b.id) })
	return runs
}

// waitsForItsEnd reports whether the run goes on when its complete chunks are marked done: it holds
// no other ones, has stopped, or runs its canaries.
func (r *run) waitsForItsEnd() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped || !r.canary.passed {
		return true
	}
	if len(r.reading) > 0 {
		return false
	}
	for _, c := range r.chunks {
		if !c.leaving {
			return false
		}
	}
	return true
}
