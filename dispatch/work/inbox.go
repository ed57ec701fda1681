package work

import (
	"sync"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// Inbox holds the messages to the loop. Putting one never blocks, and the loop takes all that are
// there at once: at high rates it wakes up once for many lines.
type Inbox struct {
	mu      sync.Mutex
	waiting []Message
	signal  chan struct{} // capacity 1: waiting may hold messages
}

// NewInbox returns an empty inbox.
func NewInbox() *Inbox { return &Inbox{signal: make(chan struct{}, 1)} }

// Put puts a message behind all others.
func (b *Inbox) Put(m Message) {
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

// Event puts an event for the planner.
func (b *Inbox) Event(ev plan.Event) { b.Put(PlannerEvent{ev}) }

// Signal returns a channel that has a value when there may be messages.
func (b *Inbox) Signal() <-chan struct{} { return b.signal }

// Take returns the messages. It reuses the slice of those that the caller has processed.
func (b *Inbox) Take(processed []Message) []Message {
	clear(processed)
	b.mu.Lock()
	messages := b.waiting
	b.waiting = processed[:0]
	b.mu.Unlock()
	return messages
}
