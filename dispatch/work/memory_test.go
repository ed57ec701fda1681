package work

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

func TestShareIsNeverExceeded(t *testing.T) {
	m := NewMemory(3000)
	s := &m.Results
	if !s.Take(600) || s.Take(401) || !s.Take(400) || !s.Full() {
		t.Fatal("a share of 1000 bytes lends 600 and 400, and not one more")
	}
	s.Give(1000)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			for range 200 {
				bytes := int64(1 + i*30) // some more than there are
				if err := s.Wait(t.Context(), bytes); err != nil {
					t.Error(err)
				}
				if used := s.used.Load(); used > max(s.limit, 1+49*30) {
					t.Errorf("%d bytes are used", used)
				}
				s.Give(bytes)
			}
		})
	}
	all.Wait()
	if s.used.Load() != 0 {
		t.Errorf("%d bytes are left in use", s.used.Load())
	}
}

func TestWaitingForAShareEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &NewMemory(300).Results
		s.Force(500)
		ctx, cancel := context.WithCancelCause(t.Context())
		waited := make(chan error, 1)
		go func() { waited <- s.Wait(ctx, 10) }()
		synctest.Wait()
		cause := errors.New("enough")
		cancel(cause)
		if err := <-waited; !errors.Is(err, cause) {
			t.Errorf("got %v, want %v", err, cause)
		}
		go func() { waited <- s.Wait(t.Context(), 10) }()
		synctest.Wait()
		s.Give(495)
		if err := <-waited; err != nil || s.used.Load() != 15 {
			t.Errorf("got %v with %d used, want 15", err, s.used.Load())
		}
	})
}
