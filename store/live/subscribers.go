package live

import (
	"slices"
	"sync"
)

// Subscribers calls the subscribers of one process. The zero value has none.
type Subscribers struct {
	mu    sync.RWMutex
	takes []*func(Topic, []string)
}

// Add adds a subscriber until stop returns.
func (s *Subscribers) Add(take func(Topic, []string)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &take
	s.takes = append(s.takes, one)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.takes = slices.DeleteFunc(s.takes, func(t *func(Topic, []string)) bool {
			return t == one
		})
	}
}

// Call calls all subscribers.
func (s *Subscribers) Call(topic Topic, ids []string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, take := range s.takes {
		(*take)(topic, ids)
	}
}
