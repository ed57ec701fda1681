package work

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Queue passes keys to workers in the order in which they were added. Adding never blocks. A key is
// queued once, however often it was added, and worked on by one worker at a time; a key that is
// added while a worker has it is worked on once more. Pointers as keys make every item its own.
type Queue[K comparable] struct {
	mu      sync.Mutex
	order   []K
	queued  map[K]bool
	working map[K]bool
	later   map[K]*time.Timer
	signal  chan struct{} // capacity 1: order may hold a key
	closed  bool
}

// NewQueue returns an empty queue.
func NewQueue[K comparable]() *Queue[K] {
	return &Queue[K]{
		queued: map[K]bool{}, working: map[K]bool{}, later: map[K]*time.Timer{},
		signal: make(chan struct{}, 1),
	}
}

// Add adds the key behind all others.
func (q *Queue[K]) Add(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.addLocked(key)
}

// AddFirst adds the key, or moves it, in front of all others, since a client waits for it.
func (q *Queue[K]) AddFirst(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.order, key); i >= 0 {
		q.order = slices.Delete(q.order, i, i+1)
		delete(q.queued, key)
	}
	if q.closed || q.queued[key] {
		return
	}
	q.queued[key] = true
	if !q.working[key] {
		q.order = slices.Insert(q.order, 0, key)
		q.wake()
	}
}

func (q *Queue[K]) addLocked(key K) {
	if q.closed || q.queued[key] {
		return
	}
	q.queued[key] = true
	if !q.working[key] {
		q.order = append(q.order, key)
		q.wake()
	}
}

// AddAfter adds the key once the time has passed. It replaces an earlier addAfter of the same key.
func (q *Queue[K]) AddAfter(key K, wait time.Duration) {
	if wait <= 0 {
		q.Add(key)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if timer := q.later[key]; timer != nil {
		timer.Stop()
	}
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.later[key] == timer {
			delete(q.later, key)
			q.addLocked(key)
		}
	})
	q.later[key] = timer
}

func (q *Queue[K]) wake() {
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

// Run works on keys until ctx is done. Several goroutines may run it.
func (q *Queue[K]) Run(ctx context.Context, work func(ctx context.Context, key K)) {
	for {
		key, ok := q.take()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-q.signal:
			}
			continue
		}
		if ctx.Err() == nil {
			work(ctx, key)
		}
		q.done(key)
	}
}

func (q *Queue[K]) take() (key K, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		return key, false
	}
	key = q.order[0]
	q.order = q.order[1:]
	delete(q.queued, key)
	q.working[key] = true
	if len(q.order) > 0 {
		q.wake() // for another worker
	}
	return key, true
}

func (q *Queue[K]) done(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.working, key)
	if q.queued[key] {
		q.order = append(q.order, key)
		q.wake()
	}
}

// Close stops all timers and refuses further keys. Workers end with their contexts.
func (q *Queue[K]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, timer := range q.later {
		timer.Stop()
	}
	clear(q.later)
}
