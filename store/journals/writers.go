package journals

import (
	"context"
	"errors"
	"sync"

	"github.com/tidefill/tidefill/store"
)

// ErrClosed means that a journal, or the store that it belongs to, was closed.
var ErrClosed = errors.New("journal is closed")

// Writers holds the newest writer of each chunk in this process. The zero value has none.
type Writers struct {
	mu     sync.Mutex
	open   map[store.ChunkID]writer
	closed bool
}

// writer is an open journal with its Log.
type writer struct {
	log     *Log
	journal store.Journal
}

// Enter makes a journal the writer of its chunk, and fences the earlier one.
func (ws *Writers) Enter(l *Log, j store.Journal) error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		return ErrClosed
	}
	if ws.open == nil {
		ws.open = map[store.ChunkID]writer{}
	}
	if earlier, is := ws.open[l.ID]; is {
		if earlier.log.Epoch > l.Epoch {
			return store.ErrFenced
		}
		earlier.log.Fence()
	}
	ws.open[l.ID] = writer{l, j}
	return nil
}

// Forget removes a writer, unless a newer one has its place.
func (ws *Writers) Forget(l *Log) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.open[l.ID].log == l {
		delete(ws.open, l.ID)
	}
}

// CloseAll closes all writers, and lets no other enter.
func (ws *Writers) CloseAll() error {
	ws.mu.Lock()
	open := ws.open
	ws.open, ws.closed = nil, true
	ws.mu.Unlock()
	errs := make(chan error, len(open))
	for _, w := range open {
		go func() { errs <- w.journal.Close(context.Background()) }()
	}
	var all error
	for range open {
		if err := <-errs; !errors.Is(err, store.ErrFenced) { // its owner was notified
			all = errors.Join(all, err)
		}
	}
	return all
}
