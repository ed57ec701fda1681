package dispatch

import (
	"context"
	"sync"

	"github.com/tidefill/tidefill/dispatch/openai"
)

// reins let the loop end a line that a sender has under way. The sender's context outlives the
// line, so ending it by way of that alone could hit the line after it.
type reins struct {
	mu     sync.Mutex
	cancel context.CancelCauseFunc // of the request under way; nil: none is
	pulled bool
}

// hold says what ends the request that begins now.
func (r *reins) hold(cancel context.CancelCauseFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel = cancel
	if r.pulled {
		cancel(openai.ErrRecalled)
	}
}

// drop says that the request is over.
func (r *reins) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel = nil
}

// pull ends the request, or the one that is about to begin.
func (r *reins) pull() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pulled = true
	if r.cancel != nil {
		r.cancel(openai.ErrRecalled)
	}
}
