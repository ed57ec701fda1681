package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

const (
	// watchEvery is the interval at which batches with event streams are read.
	watchEvery = 300 * time.Millisecond
	// wakeEvery is the shortest time between two rounds, however often batches change.
	wakeEvery = 100 * time.Millisecond
	// watchPage is the number of changes that are read at once.
	watchPage = 1000
)

// watch reads batches for all event streams of the process together. In each round it lists what
// has changed, reads that, and reads the progress of all batches in one call, so a thousand streams
// cost the store little more than one. The first stream starts the rounds and the last one ends
// them.
type watch struct {
	meta Metadata
	show func(context.Context, ...store.Batch) ([]batchObject, error)

	mu        sync.Mutex
	streams   map[string]int       // number of streams by batch
	snapshots map[string]*snapshot // of the last round
	round     chan struct{}        // closed at the end of the next round
	cancel    context.CancelFunc   // ends the rounds; nil: none are running
	ended     chan struct{}        // closed when the rounds have ended
	woken     chan struct{}        // capacity 1: begin a round now
}

// snapshot is the state of a batch in a round, or the error of reading it. It is large, and the
// streams of the batch share it.
type snapshot struct {
	batch store.Batch
	shown batchObject
	err   error
	texts eventTexts // of its events
}

// join adds a stream. The stream must call leave.
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

// leave removes a stream. The last one waits for the end of the rounds.
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

// latest returns the last snapshot of a batch, nil if there is none yet, and a channel that is
// closed when there is a newer one.
func (w *watch) latest(id string) (last *snapshot, next <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.snapshots[id], w.round
}

func (w *watch) run(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	began := time.Now()
	known := knownBatches{byID: make(map[string]store.Batch)}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-w.woken:
			select {
			case <-ctx.Done():
				return
			case <-time.After(wakeEvery - time.Since(began)):
			}
			tick.Reset(watchEvery)
		}
		began = time.Now()
		ids := w.followed()
		snapshots, err := w.refresh(ctx, &known, ids)
		if err != nil {
			snapshots = make(map[string]*snapshot, len(ids))
			for _, id := range ids {
				snapshots[id] = &snapshot{err: err}
			}
		}
		w.mu.Lock()
		if ctx.Err() == nil {
			w.snapshots = snapshots
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

// wake has a round begin soon if one of the batches has streams; none: anything may have changed.
func (w *watch) wake(ids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.streams) == 0 || len(ids) > 0 && !slices.ContainsFunc(ids, func(id string) bool {
		return w.streams[id] > 0
	}) {
		return
	}
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// Wake has the event streams of these batches look soon for what has changed; none: all streams. A
// change of which it is not called is found some hundred milliseconds later.
func (s *Server) Wake(ids ...string) { s.watch.wake(ids) }

// knownBatches holds the batches with streams as they were at the cursor or later.
type knownBatches struct {
	cursor store.Cursor
	byID   map[string]store.Batch
}

// refresh reads the batches of a round.
func (w *watch) refresh(
	ctx context.Context, known *knownBatches, ids []string,
) (map[string]*snapshot, error) {
	if err := w.dropChanged(ctx, known); err != nil {
		return nil, err
	}
	snapshots, current := make(map[string]*snapshot, len(ids)),
		make(map[string]store.Batch, len(ids))
	batches := make([]store.Batch, 0, len(ids))
	for _, id := range ids {
		b, ok := known.byID[id]
		if !ok {
			var err error
			// The streams have checked the tenant.
			if b, err = w.meta.Batch(ctx, "", id); errors.Is(err, store.ErrNotFound) {
				snapshots[id] = &snapshot{err: notFound("Batch", id)}
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
		snapshots[b.ID] = &snapshot{batch: b, shown: shown[i]}
	}
	return snapshots, nil
}

// dropChanged removes the batches that have changed, so that they are read again. Changes are
// listed before batches are read: a change in between is read twice rather than missed.
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
