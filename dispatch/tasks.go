package dispatch

import (
	"context"
	"sync"

	"github.com/tidefill/tidefill/dispatch/openai"
)

// tasks runs work that must be finished after a session takes no more: chunks that end or are put
// back, posts of progress. Its context outlives the session's by the drain time; the requests in
// flight end with it too.
type tasks struct {
	ctx   context.Context
	end   context.CancelCauseFunc
	group sync.WaitGroup
}

func newTasks(ctx context.Context) *tasks {
	t := &tasks{}
	t.ctx, t.end = context.WithCancelCause(context.WithoutCancel(ctx))
	t.group.Add(1) // until wait: tasks start at any time, also while there are none
	return t
}

// wait returns when all tasks have ended. It is called once, when no more tasks start but by those
// that run.
func (t *tasks) wait() {
	t.group.Done()
	t.group.Wait()
}

// start runs do in a goroutine. do ends soon after its context is done.
func (t *tasks) start(do func(ctx context.Context)) { t.group.Go(func() { do(t.ctx) }) }

// evict ends the context, and with it the requests in flight.
func (t *tasks) evict() { t.end(openai.ErrEvicted) }
