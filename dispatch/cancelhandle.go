package dispatch

import (
	"context"
	"sync"

	"github.com/tidefill/tidefill/dispatch/openai"
)

// cancelHandle lets the loop cancel a request that a sender has in flight. A sender uses one
// context for many requests, so canceling that context alone could hit the request after the one
// meant.
type cancelHandle struct {
	mu       sync.Mutex
	cancel   context.CancelCauseFunc // of the request in flight; nil: there is none
	canceled bool
}

// attach sets the function that cancels the request that begins now.
func (h *cancelHandle) attach(cancel context.CancelCauseFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cancel = cancel
	if h.canceled {
		cancel(openai.ErrEvicted)
	}
}

// detach ends the hold on the request, which is over.
func (h *cancelHandle) detach() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cancel = nil
}

// evict cancels the request in flight, or the one that is about to begin.
func (h *cancelHandle) evict() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.canceled = true
	if h.cancel != nil {
		h.cancel(openai.ErrEvicted)
	}
}
