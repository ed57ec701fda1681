package work

import (
	"context"
	"sync"
)

// Tasks runs work that must be finished after a session takes no more: chunks that end or are put
// back, posts of progress. Its context outlives the session's by the drain time; the requests in
// flight end with it too.
type Tasks struct {
	Context context.Context
	end     context.CancelCauseFunc
	evicted error
	group   sync.WaitGroup
}

// NewTasks returns tasks whose context is canceled with evicted as the cause.
func NewTasks(ctx context.Context, evicted error) *Tasks {
	ctx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	t := &Tasks{Context: ctx, end: end, evicted: evicted}
	t.group.Add(1) // until wait: tasks start at any time, also while there are none
	return t
}

// Wait returns when all tasks have ended. It is called once, when no more tasks start but by those
// that run.
func (t *Tasks) Wait() {
	t.group.Done()
	t.group.Wait()
}

// Start runs do in a goroutine. do ends soon after its context is done.
func (t *Tasks) Start(do func(ctx context.Context)) { t.group.Go(func() { do(t.Context) }) }

// Evict ends the context, and with it the requests in flight.
func (t *Tasks) Evict() { t.end(t.evicted) }
