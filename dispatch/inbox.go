package dispatch

import (
	"sync"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// inbox holds the messages to the loop. Putting one never blocks, and the loop takes all that are
// there at once: at high rates it wakes up once for many lines.
type inbox struct {
	mu      sync.Mutex
	waiting []message
	signal  chan struct{} // capacity 1: waiting may hold messages
}

func newInbox() *inbox { return &inbox{signal: make(chan struct{}, 1)} }

func (b *inbox) put(m message) {
	b.mu.Lock()
	first := len(b.waiting) == 0
	b.waiting = append(b.waiting, m)
	b.mu.Unlock()
	if first {
		select {
		case b.signal <- struct{}{}:
		default:
		}
	}
}

// event puts an event for the planner.
func (b *inbox) event(ev plan.Event) { b.put(plannerEvent{ev}) }

// take returns the messages. It reuses the slice of those that the caller has processed.
func (b *inbox) take(processed []message) []message {
	clear(processed)
	b.mu.Lock()
	messages := b.waiting
	b.waiting = processed[:0]
	b.mu.Unlock()
	return messages
}
