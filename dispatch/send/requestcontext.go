package send

import (
	"context"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/work"
)

// requestContext makes the contexts of a sender's requests: each ends with its run and after a time
// limit. It uses one context for successive requests of a run, since a new context for each would
// cost more than the rest of the bookkeeping.
type requestContext struct {
	run    *work.Run
	ctx    context.Context
	cancel context.CancelCauseFunc
	evict  context.CancelFunc // cancels it because the line is evicted
	timer  *time.Timer
}

// begin returns the context of a request of the run.
func (c *requestContext) begin(r *work.Run, limit time.Duration) context.Context {
	if c.run != r || c.ctx.Err() != nil {
		c.close()
		ctx, cancel := context.WithCancelCause(r.Context)
		*c = requestContext{run: r, ctx: ctx, cancel: cancel,
			evict: func() { cancel(openai.ErrEvicted) },
			timer: time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })}
		return c.ctx
	}
	c.timer.Reset(limit)
	return c.ctx
}

// end stops the time limit of the request, which is over.
func (c *requestContext) end() {
	if !c.timer.Stop() {
		c.close() // it ended just now; the next request needs a new context
	}
}

func (c *requestContext) close() {
	if c.run != nil {
		c.timer.Stop()
		c.cancel(nil)
		*c = requestContext{}
	}
}
