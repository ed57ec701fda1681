package dispatch

import (
	"context"
	"time"
)

// bound limits how long a request may take, and ends it with its run. A sender uses one for all its
// lines: a context of its own for each would cost more than the rest of the bookkeeping.
type bound struct {
	run    *run
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// begin returns the context of a request of the run.
func (b *bound) begin(r *run, limit time.Duration) context.Context {
	if b.run != r || b.ctx.Err() != nil {
		b.close()
		b.run = r
		ctx, cancel := context.WithCancelCause(r.work)
		b.ctx, b.cancel = ctx, cancel
		b.timer = time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })
		return b.ctx
	}
	b.timer.Reset(limit)
	return b.ctx
}

// end says that the request is over.
func (b *bound) end() {
	if !b.timer.Stop() {
		b.close() // the time ran out just now; the next request needs a fresh one
	}
}

func (b *bound) close() {
	if b.run != nil {
		b.timer.Stop()
		b.cancel(nil)
		*b = bound{}
	}
}
