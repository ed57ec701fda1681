package dispatch

import (
	"context"
	"sync/atomic"
)

// memory bounds what dispatching holds. It is divided into shares that never wait for each other,
// so that no user of one can hold up those of another: lines that were read ahead fall back to
// their file, answers to a temporary one, and results wait for the medium.
type memory struct {
	inputs  share // lines that were read ahead or are under way
	answers share // answers while they are read
	results share // results that are not durable yet
}

func newMemory(bytes int64) *memory {
	m := &memory{}
	for _, s := range []*share{&m.inputs, &m.answers, &m.results} {
		s.limit, s.freed = bytes/3, make(chan struct{}, 1)
	}
	return m
}

// share is a number of bytes that may be held together.
type share struct {
	limit   int64
	used    atomic.Int64
	waiting atomic.Int32
	freed   chan struct{} // capacity 1: something may have been given back
}

// Take reports whether so many bytes may be held from now on.
func (s *share) Take(bytes int64) bool {
	for {
		used := s.used.Load()
		if used+bytes > s.limit {
			return false
		}
		if s.used.CompareAndSwap(used, used+bytes) {
			return true
		}
	}
}

// force takes bytes whether or not there are any left.
func (s *share) force(bytes int64) { s.used.Add(bytes) }

// wait takes bytes once there are that many; more than there ever are, once nobody else holds any.
func (s *share) wait(ctx context.Context, bytes int64) error {
	if s.Take(bytes) {
		return nil
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	for !s.Take(bytes) && !s.used.CompareAndSwap(0, bytes) {
		select {
		case <-s.freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	s.wake() // there may be enough for another one
	return nil
}

// Give returns bytes that were taken.
func (s *share) Give(bytes int64) {
	if bytes != 0 {
		s.used.Add(-bytes)
		s.wake()
	}
}

func (s *share) wake() {
	if s.waiting.Load() == 0 {
		return
	}
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// full reports whether nothing is left.
func (s *share) full() bool { return s.used.Load() >= s.limit }
