package driver

import (
	"errors"
	"sync"

	"github.com/tidefill/tidefill/autoscale"
)

// ErrUnknown is returned while no state of the pools is known: a number that is made up then would
// remove replicas that are at work.
var ErrUnknown = errors.New("the state of the pools is not loaded yet")

// published is the newest snapshot, for all who ask.
type published struct {
	mu       sync.Mutex
	snapshot *autoscale.Snapshot
	changed  chan struct{} // closed when a newer snapshot is there
}

func newPublished() *published { return &published{changed: make(chan struct{})} }

func (p *published) set(s *autoscale.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.snapshot != nil && s.At.Before(p.snapshot.At) {
		return // another process was faster
	}
	p.snapshot = s
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *published) get() (*autoscale.Snapshot, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.snapshot == nil {
		return nil, p.changed, ErrUnknown
	}
	return p.snapshot, p.changed, nil
}
