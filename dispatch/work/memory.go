package work

import (
	"context"
	"sync/atomic"
)

// Memory limits the bytes that dispatching holds. Its shares never wait for each other, so no use
// of one can block another: lines that were read ahead are read again from their file, answers go
// to a temporary file, and results wait for the disk.
type Memory struct {
	Inputs  Share // lines that were read ahead or are in flight
	Answers Share // answers while they are read
	Results Share // results that are not durable yet
}

// NewMemory returns memory of so many bytes, a third for each share.
func NewMemory(bytes int64) *Memory {
	m := &Memory{}
	for _, s := range []*Share{&m.Inputs, &m.Answers, &m.Results} {
		s.limit, s.freed = bytes/3, make(chan struct{}, 1)
	}
	return m
}

// Share limits the bytes that its users hold together.
type Share struct {
	limit   int64
	used    atomic.Int64
	waiting atomic.Int32
	freed   chan struct{} // capacity 1: something may have been given back
}

// Take takes bytes; false: there are not that many.
func (s *Share) Take(bytes int64) bool {
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

// Force takes bytes even if there are not that many.
func (s *Share) Force(bytes int64) { s.used.Add(bytes) }

// Wait takes bytes once there are that many. More than the limit it takes once no others are taken.
func (s *Share) Wait(ctx context.Context, bytes int64) error {
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

// Give gives back bytes that were taken.
func (s *Share) Give(bytes int64) {
	if bytes != 0 {
		s.used.Add(-bytes)
		s.wake()
	}
}

func (s *Share) wake() {
	if s.waiting.Load() == 0 {
		return
	}
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// Full reports whether nothing is left.
func (s *Share) Full() bool { return s.used.Load() >= s.limit }
