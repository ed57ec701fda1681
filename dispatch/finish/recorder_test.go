package finish

import (
	"context"
	"log/slog"
	"sync"
	"syscall"
	"testing"

	"github.com/tidefill/tidefill/dispatch/work"
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
	c, sent := &work.Chunk{}, work.NewInbox()
	rec := NewRecorder(&work.Session{Log: slog.New(log), Inbox: sent}, nil, nil)
	var blocking sync.WaitGroup
	blocking.Go(func() { rec.block(c, syscall.EIO) })
	<-log.begun
	rec.Unblock(c)
	close(log.release)
	blocking.Wait()
	got := sent.Take(nil)
	if len(got) != 2 || got[1] != (work.ResultsBlocked{}) {
		t.Errorf("sent %+v, want the end of the hold last", got)
	}
}
