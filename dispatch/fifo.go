package dispatch

import (
	"context"
	"sync"
)

// fifo hands items to workers in the order they came. Putting one never blocks.
type fifo[T any] struct {
	mu     sync.Mutex
	items  []T
	signal chan struct{} // capacity 1: there may be something to take
}

func newFIFO[T any]() *fifo[T] { return &fifo[T]{signal: make(chan struct{}, 1)} }

func (q *fifo[T]) put(item T) {
	q.mu.Lock()
	q.items = append(q.items, item)
	q.mu.Unlock()
	q.wake()
}

func (q *fifo[T]) wake() {
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

func (q *fifo[T]) take() (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item, false
	}
	item = q.items[0]
	q.items = q.items[1:]
	if len(q.items) > 0 {
		q.wake() // for another worker
	}
	return item, true
}

// run works on items until ctx is done.
func (q *fifo[T]) run(ctx context.Context, work func(context.Context, T)) {
	for ctx.Err() == nil {
		if item, ok := q.take(); ok {
			work(ctx, item)
			continue
		}
		select {
		case <-ctx.Done():
		case <-q.signal:
		}
	}
}
