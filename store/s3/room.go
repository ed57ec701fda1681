package s3

import (
	"context"
	"sync"
	"time"
)

// longWait is the time that a writer waits for room. Then it goes on: those that have the room may
// be waiting for it.
const longWait = 5 * time.Second

// room limits the bytes of buffers.
type room struct {
	limit int64

	mu    sync.Mutex
	used  int64
	freed chan struct{} // is closed, and replaced, when bytes are freed
}

func newRoom(limit int64) *room { return &room{limit: limit, freed: make(chan struct{})} }

// tryTake takes n bytes if there are as many.
func (r *room) tryTake(n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used+n > r.limit {
		return false
	}
	r.used += n
	return true
}

// take takes n bytes, also beyond the limit after longWait.
func (r *room) take(ctx context.Context, n int64) error {
	timeout := time.NewTimer(longWait)
	defer timeout.Stop()
	for {
		r.mu.Lock()
		if r.used+n <= r.limit {
			r.used += n
			r.mu.Unlock()
			return nil
		}
		freed := r.freed
		r.mu.Unlock()
		select {
		case <-freed:
		case <-timeout.C:
			r.mu.Lock()
			r.used += n
			r.mu.Unlock()
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (r *room) free(n int64) {
	if n == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= n
	close(r.freed)
	r.freed = make(chan struct{})
}
