package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
)

// finalize writes the result files of a batch that nobody works on any more, and ends it. Whoever comes here after a
// crash writes the same files again, under the same names.
func (s *session) finalize(ctx context.Context, r *run, b store.Batch) error {
	lock := "finalize/" + b.ID
	_, ok, err := s.deps.Metadata.Lock(ctx, s.owner, lock)
	if err != nil {
		return err
	}
	if !ok {
		s.keep.addAfter(b.ID, askAgain)
		return nil
	}
	defer s.deps.Metadata.Unlock(context.WithoutCancel(ctx), s.owner, lock)
	found, err := s.gather(ctx, &b)
	if err != nil {
		return fmt.Errorf("gather results of batch %s: %w", b.ID, err)
	}
	if b.Ending == store.Completed && len(found.lost) > 0 {
		return s.runAgain(ctx, b.ID, found.lost)
	}
	src, err := openSource(ctx, s.deps.Blobs, &b)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if src != nil {
		defer src.close()
	}
	outputs := make([]store.Output, len(b.Outputs))
	counts := store.Counts{Total: b.Counts.Total}
	for i, out := range b.Outputs {
		first, lines := 0, b.Counts.Total
		if out.Input >= 0 {
			first, lines = b.Inputs[out.Input].First, b.Inputs[out.Input].Lines
		}
		w := resultFiles{session: s, batch: &b, source: src, found: found}
		outputs[i], err = w.write(ctx, out, first, lines)
		w.close()
		if err != nil {
			return fmt.Errorf("write results of batch %s: %w", b.ID, err)
		}
		counts.Completed += w.completed
		counts.Failed += w.failed
	}
	if err := s.conclude(ctx, &b, outputs, counts, found); err != nil {
		return err
	}
	s.dropInputs(ctx, &b)
	return s.deps.Blobs.Delete(ctx, orderKey(b.ID))
}

// conclude makes the end of a batch known.
func (s *session) conclude(ctx context.Context, b *store.Batch, outputs []store.Output, counts store.Counts, found *results) error {
	_, err := store.Modify(ctx, s.deps.Metadata, "", b.ID, func(b *store.Batch) error {
		if b.State != store.Finalizing && b.State != store.Cancelling {
			return errSettled
		}
		now := time.Now()
		b.Outputs, b.Counts, b.Attempts = outputs, counts, found.attempts
		b.Usage = &found.usage
		b.Paused = false
		switch b.State = b.Ending; b.State {
		case store.Completed:
			b.CompletedAt = now
		case store.Expired:
			b.ExpiredAt = now
		case store.Failed:
			b.FailedAt = now
		default:
			b.State, b.CancelledAt = store.Cancelled, now
		}
		return nil
	})
	switch {
	case errors.Is(err, errSettled) || errors.Is(err, store.ErrConflict):
		s.keep.add(b.ID)
		return nil
	case err != nil:
		return fmt.Errorf("end batch %s: %w", b.ID, err)
	}
	s.metrics.ended(b.Ending)
	s.log.InfoContext(ctx, "batch ended", "batch_id", b.ID, "state", b.Ending, "completed", counts.Completed, "failed", counts.Failed)
	s.keep.add(b.ID)
	return nil
}
