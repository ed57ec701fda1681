package segments

import (
	"context"
	"sync"
)

// budget limits the bytes of records in memory.
type budget struct {
	limit int64

	mu    sync.Mutex
	used  int64
	freed chan struct{} // is closed, and replaced, when bytes are freed
}

func newBudget(limit int64) *budget {
	return &budget{limit: limit, freed: make(chan struct{})}
}

// take takes n bytes if there are as many, or if none are taken, so that every record fits. Else it
// returns a channel that is closed when it may be tried again.
func (b *budget) take(n int64) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used > 0 && b.used+n > b.limit {
		return b.freed
	}
	b.used += n
	return nil
}

func (b *budget) free(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	close(b.freed)
	b.freed = make(chan struct{})
}

// wait waits for a channel of take.
func wait(ctx context.Context, freed <-chan struct{}) error {
	select {
	case <-freed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
