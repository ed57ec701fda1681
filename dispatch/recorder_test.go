package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"syscall"
	"testing"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// slowHandler is a log that takes an error record only when it is released.
type slowHandler struct {
	slog.Handler
	begun, release chan struct{}
}

func (h slowHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h slowHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelError {
		close(h.begun)
		<-h.release
	}
	return nil
}

// The end of a hold comes after the hold, however long the log takes.
func TestHoldsEndInOrder(t *testing.T) {
	log := slowHandler{slog.DiscardHandler, make(chan struct{}), make(chan struct{})}
	var mu sync.Mutex
	var last plan.Hold
	c := &chunk{}
	rec := &recorder{log: slog.New(log), blockedChunks: map[*chunk]bool{},
		notify: func(message any) {
			mu.Lock()
			defer mu.Unlock()
			last = message.(plan.Hold)
		}}
	var blocking sync.WaitGroup
	blocking.Go(func() { rec.block(c, syscall.EIO) })
	<-log.begun
	rec.unblock(c)
	close(log.release)
	blocking.Wait()
	if last != (plan.Hold{}) {
		t.Errorf("the last hold is %+v, want none", last)
	}
}
