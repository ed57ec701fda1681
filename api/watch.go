package api

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

const (
	// watchEvery is how often followed batches are looked at: fast enough to look live.
	watchEvery = 300 * time.Millisecond
	// watchPage is how many changes are asked for at once.
	watchPage = 1000
)

// A watch looks at batches for all event streams of the process at once. A round asks for what has
// changed, reads that, and reads the progress of all in one call, so a thousand streams cost the
// store little more than one. There are rounds while there are streams: the first to come starts
// them, the last to leave ends them.
type watch struct {
	meta Metadata
	show func(context.Context, ...store.Batch) ([]batchObject, error)

	mu        sync.Mutex
	streams   map[string]int       // how many follow a batch
	snapshots map[string]*snapshot // in the last round
	round     chan struct{}        // closed when the next one is over
	cancel    context.CancelFunc   // ends the rounds; nil: there are none
	ended     chan struct{}        // closed when they have
}

// snapshot is how a batch was when it was looked at, or why it couldn't be. It is large, and shared
// by the streams of the batch.
type snapshot struct {
	batch store.Batch
	shown batchObject
	err   error
	texts eventTexts // of its events
}

// join adds a stream, which must leave.
func (w *watch) join(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams[id]++
	if w.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	w.cancel, w.ended = cancel, ended
	go func() {
		defer close(ended)
		w.run(ctx)
	}()
}

// leave waits for the end of the rounds if it ends them.
func (w *watch) leave(id string) {
	if ended := w.remove(id); ended != nil {
		<-ended
	}
}

func (w *watch) remove(id string) (ended <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams[id]--; w.streams[id] > 0 {
		return nil
	}
	delete(w.streams, id)
	if len(w.streams) > 0 {
		return nil
	}
	w.cancel()
	w.cancel, w.snapshots = nil, nil
	return w.ended
}

// latest returns the last sighting of a batch, nil if there is none yet, and what closes when there is
// another.
func (w *watch) latest(id string) (last *snapshot, next <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.snapshots[id], w.round
}

func (w *watch) run(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	known := knownBatches{byID: make(map[string]store.Batch)}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		ids := w.followed()
		seen, err := w.refresh(ctx, &known, ids)
		if err != nil {
			seen = make(map[string]*snapshot, len(ids))
			for _, id := range ids {
				seen[id] = &snapshot{err: err}
			}
		}
		w.mu.Lock()
		if ctx.Err() == nil {
			w.snapshots = seen
			close(w.round)
			w.round = make(chan struct{})
		}
		w.mu.Unlock()
	}
}

func (w *watch) followed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := make([]string, 0, len(w.streams))
	for id := range w.streams {
		ids = append(ids, id)
	}
	return ids
}

// knownBatches holds the followed batches as they were at the cursor, or later.
type knownBatches struct {
	cursor store.Cursor
	byID   map[string]store.Batch
}

// refresh is a round.
func (w *watch) refresh(
	ctx context.Context, known *knownBatches, ids []string,
) (map[string]*snapshot, error) {
	if err := w.dropChanged(ctx, known); err != nil {
		return nil, err
	}
	seen, current := make(map[string]*snapshot, len(ids)), make(map[string]store.Batch, len(ids))
	batches := make([]store.Batch, 0, len(ids))
	for _, id := range ids {
		b, ok := known.byID[id]
		if !ok {
			var err error
			// Streams have checked whose batch it is.
			if b, err = w.meta.Batch(ctx, "", id); errors.Is(err, store.ErrNotFound) {
				seen[id] = &snapshot{err: notFound("Batch", id)}
				continue
			} else if err != nil {
				return nil, fmt.Errorf("follow batch %s: %w", id, err)
			}
		}
		current[id] = b
		batches = append(batches, b)
	}
	known.byID = current
	shown, err := w.show(ctx, batches...)
	if err != nil {
		return nil, err
	}
	for i, b := range batches {
		seen[b.ID] = &snapshot{batch: b, shown: shown[i]}
	}
	return seen, nil
}

// dropChanged forgets the batches that have changed since, so that they are read again. Changes
// come before reads, so that what changes in between is read twice rather than missed.
func (w *watch) dropChanged(ctx context.Context, known *knownBatches) error {
	for {
		changed, next, err := w.meta.ChangedBatches(ctx, known.cursor, watchPage)
		if errors.Is(err, store.ErrBadCursor) && known.cursor != "" {
			known.cursor = ""
			clear(known.byID)
			continue
		}
		if err != nil {
			return fmt.Errorf("follow batches: %w", err)
		}
		known.cursor = next
		for _, id := range changed {
			delete(known.byID, id)
		}
		if len(changed) < watchPage {
			return nil
		}
	}
}
