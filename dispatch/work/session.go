package work

import (
	"context"
	"log/slog"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/tracing"
)

// Session holds what the parts of a session share. It never changes.
type Session struct {
	Owner   store.Owner // this process, as it is registered
	Log     *slog.Logger
	Inbox   *Inbox // of the loop
	Runs    *Runs
	Tasks   *Tasks
	Memory  *Memory
	Batches *Queue[string]          // to reconcile
	Lose    context.CancelCauseFunc // ends the session
	Tracer  *tracing.Tracer         // nil: traces are off
}

// Ended reports that this process has ended a batch in the store.
func (s *Session) Ended(ctx context.Context, b *store.Batch) {
	level := slog.LevelInfo
	if b.State == store.Expired ||
		b.Counts.Failed > 0 && (b.State == store.Failed || len(b.Failures) > 0) {
		level = slog.LevelWarn
	}
	s.Log.Log(ctx, level, "batch ended", b.EndLogArgs()...)
	s.Tracer.BatchEnded(b)
}
