package dispatch

import (
	"context"
	"slices"
	"sync"
	"time"
)

// workqueue hands keys to workers: each key to one worker at a time, and once more if it was added
// while worked on.
type workqueue struct {
	mu      sync.Mutex
	order   []string
	queued  map[string]bool
	working map[string]bool
	later   map[string]*time.Timer
	signal  chan struct{} // capacity 1: there may be something in order
	closed  bool
}

func newWorkqueue() *workqueue {
	return &workqueue{
		queued: map[string]bool{}, working: map[string]bool{}, later: map[string]*time.Timer{},
		signal: make(chan struct{}, 1),
	}
}

func (q *workqueue) add(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.addLocked(key)
}

// addFirst adds the key in front of all others: somebody is waiting for it.
func (q *workqueue) addFirst(key string) {
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

func (q *workqueue) addLocked(key string) {
	if q.closed || q.queued[key] {
		return
	}
	q.queued[key] = true
	if !q.working[key] {
		q.order = append(q.order, key)
		q.wake()
	}
}

// addAfter adds the key once the time has passed; an earlier appointment for the same key stands.
func (q *workqueue) addAfter(key string, wait time.Duration) {
	if wait <= 0 {
		q.add(key)
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

func (q *workqueue) wake() {
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

// run works on keys until ctx is done.
func (q *workqueue) run(ctx context.Context, work func(ctx context.Context, key string)) {
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

func (q *workqueue) take() (string, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		return "", false
	}
	key := q.order[0]
	q.order = q.order[1:]
	delete(q.queued, key)
	q.working[key] = true
	if len(q.order) > 0 {
		q.wake() // for another worker
	}
	return key, true
}

func (q *workqueue) done(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.working, key)
	if q.queued[key] {
		q.order = append(q.order, key)
		q.wake()
	}
}

// close forgets all appointments; what is being worked on ends by itself.
func (q *workqueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, timer := range q.later {
		timer.Stop()
	}
	clear(q.later)
}
