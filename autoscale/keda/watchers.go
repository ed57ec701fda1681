package keda

import (
	"context"
	"sync"
	"time"
)

// watchers are the streams of activity that are open. One goroutine follows the decisions for all
// of them and wakes those whose pool has changed.
type watchers struct {
	mu  sync.Mutex
	all map[*watcher]struct{}
}

func newWatchers() *watchers { return &watchers{all: map[*watcher]struct{}{}} }

// watcher is a stream of activity.
type watcher struct {
	reference
	wake chan struct{} // capacity 1

	// Guarded by watchers.mu.
	known, active bool
	rises         int // changes to active
}

// add begins to watch for a ScaledObject. answer returns what it gets now.
func (ws *watchers) add(r reference, answer func(reference) (answer, error)) *watcher {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := &watcher{reference: r, wake: make(chan struct{}, 1)}
	ws.all[w] = struct{}{}
	w.update(answer)
	return w
}

func (ws *watchers) remove(w *watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.all, w)
}

// state returns whether the pool is active, and the number of changes to that, after a wake.
func (ws *watchers) state(w *watcher) (active bool, rises int) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return w.active, w.rises
}

// follow updates the streams after each decision, and every second because of new batches, until
// ctx ends.
func (ws *watchers) follow(
	ctx context.Context, changed func() <-chan struct{}, answer func(reference) (answer, error),
) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		next := changed() // before the answers, so that none is missed
		ws.mu.Lock()
		for w := range ws.all {
			w.update(answer)
		}
		ws.mu.Unlock()
		select {
		case <-next:
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// update wakes the stream if its state has changed. An error leaves the state as it was.
func (w *watcher) update(answer func(reference) (answer, error)) {
	a, err := answer(w.reference)
	if err != nil || w.known && a.active == w.active {
		return
	}
	w.known, w.active = true, a.active
	if a.active {
		w.rises++
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
