package dispatch

import "sync"

// inbox carries messages to the loop. Senders never block, and the loop takes all that has gathered
// at once: at high rates that is one wake-up for many lines.
type inbox struct {
	mu      sync.Mutex
	waiting []any
	signal  chan struct{}
}

func newInbox() *inbox { return &inbox{signal: make(chan struct{}, 1)} }

func (b *inbox) put(message any) {
	b.mu.Lock()
	first := len(b.waiting) == 0
	b.waiting = append(b.waiting, message)
	b.mu.Unlock()
	if first {
		select {
		case b.signal <- struct{}{}:
		default:
		}
	}
}

// take returns what has gathered, reusing the slice that the caller is done with.
func (b *inbox) take(spent []any) []any {
	clear(spent)
	b.mu.Lock()
	gathered := b.waiting
	b.waiting = spent[:0]
	b.mu.Unlock()
	return gathered
}
