package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// stopper moves batches from in_progress to finalizing.
type stopper struct {
	*work.Session
	metadata Metadata
}

// Stop ends a batch in progress before its time. Its results are kept; code and reason explain the
// end to the user.
func (s *stopper) Stop(ctx context.Context, id, code, reason string) error {
	s.Log.InfoContext(ctx, "stopping a batch", "batch_id", id, "code", code)
	return s.finalizeAs(ctx, id, store.Failed, reason,
		batchfile.Fault{Code: code, Message: reason})
}

// StopLater stops a batch in another goroutine, which tries again until the store accepts it.
func (s *stopper) StopLater(id, code, reason string) {
	s.Tasks.Start(func(ctx context.Context) {
		for ctx.Err() == nil {
			err := s.Stop(ctx, id, code, reason)
			if err == nil {
				return
			}
			s.Log.Warn("could not stop a batch, trying again", "batch_id", id, "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(work.RetryEvery):
			}
		}
	})
}

// finalizeAs moves a batch in progress to finalizing, with the state that it is to end in. It does
// nothing to a batch that is finalizing already.
func (s *stopper) finalizeAs(
	ctx context.Context, id string, ending store.State, reason string, faults ...batchfile.Fault,
) error {
	_, _, err := work.ModifyIf(ctx, s.metadata, id, func(b *store.Batch) bool {
		if b.State != store.InProgress {
			return false
		}
		b.State, b.Ending, b.Reason = store.Finalizing, ending, reason
		b.FinalizingAt = time.Now()
		b.Errors = append(b.Errors, faults...)
		return true
	})
	if err != nil {
		return fmt.Errorf("move batch %s to finalizing: %w", id, err)
	}
	s.Batches.Add(id)
	return nil
}
