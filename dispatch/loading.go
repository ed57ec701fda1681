package dispatch

import "sync"

// loading follows the batches that were in the store at the beginning of a session until each has
// been reconciled, so that the planner knows all of them. It is safe for concurrent use.
type loading struct {
	mu     sync.Mutex
	left   map[string]bool
	listed bool // all are, or were, in left
	found  continued
	told   bool // found was returned
}

// continued counts the batches that a session goes on with, and their lines.
type continued struct{ batches, lines int }

// continues counts a batch that was in progress before.
func (l *loading) continues(id string, lines int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left[id] {
		l.found.batches++
		l.found.lines += lines
	}
}

// tell returns the batches that the session goes on with, once, when all are known.
func (l *loading) tell() (found continued, now bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told || !l.listed || len(l.left) > 0 {
		return found, false
	}
	l.told = true
	return l.found, l.found.batches > 0
}

// add adds batches before they are reconciled.
func (l *loading) add(ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listed {
		return
	}
	if l.left == nil {
		l.left = map[string]bool{}
	}
	for _, id := range ids {
		l.left[id] = true
	}
}

// all notes that every batch was added.
func (l *loading) all() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listed = true
}

// done notes that the planner was sent a batch, or that it needs none of it.
func (l *loading) done(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.left, id)
}

// over reports whether the planner was sent all batches.
func (l *loading) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.listed && len(l.left) == 0
}
