package work

import (
	"context"
	"sync"
)

// CancelHandle lets the loop cancel a request that a sender has in flight. A sender uses one
// context for many requests, so canceling that context alone could hit the request after the one
// meant.
type CancelHandle struct {
	mu       sync.Mutex
	cancel   context.CancelFunc // of the request in flight; nil: there is none
	canceled bool
}

// Attach sets the function that cancels the request that begins now.
func (h *CancelHandle) Attach(cancel context.CancelFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cancel = cancel
	if h.canceled {
		cancel()
	}
}

// Detach ends the hold on the request, which is over.
func (h *CancelHandle) Detach() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cancel = nil
}

// Evict cancels the request in flight, or the one that is about to begin.
func (h *CancelHandle) Evict() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.canceled = true
	if h.cancel != nil {
		h.cancel()
	}
}
