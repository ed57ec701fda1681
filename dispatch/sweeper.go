package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tidefill/tidefill/store"
)

// sweepEvery is how often the sweeper runs.
const sweepEvery = 5 * time.Minute

// sweeper removes the journals of batches that ended more than store.JournalRetention ago, or are
// gone.
type sweeper struct {
	metadata Metadata
	journals Journals
	expiry   func() time.Time // the time by which things expire
	log      *slog.Logger
}

func (s *sweeper) run(ctx context.Context) {
	for {
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "could not remove old journals", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(sweepEvery):
		}
	}
}

func (s *sweeper) sweep(ctx context.Context) error {
	ids, err := s.journals.Batches(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		b, err := s.metadata.Batch(ctx, "", id)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return err
		case !b.State.Terminal() || s.expiry().Sub(b.EndedAt()) < store.JournalRetention:
			continue
		}
		if err := s.journals.Remove(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
