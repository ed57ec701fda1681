package finish

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tidefill/tidefill/store"
)

// sweepEvery is the time between two sweeps.
const sweepEvery = 5 * time.Minute

// Sweeper removes the journals of batches that ended more than store.JournalRetention ago, or are
// gone.
type Sweeper struct {
	Batches  BatchReader
	Journals OldJournals
	Expiry   func() time.Time // the time by which things expire
	Log      *slog.Logger
}

// BatchReader reads batches.
type BatchReader interface {
	Batch(ctx context.Context, tenant, id string) (store.Batch, error)
}

// OldJournals are those that a sweeper removes.
type OldJournals interface {
	Batches(ctx context.Context) ([]string, error)
	Remove(ctx context.Context, batch string) error
}

// Run sweeps until ctx is done.
func (s *Sweeper) Run(ctx context.Context) {
	for {
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "could not remove old journals", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(sweepEvery):
		}
	}
}

func (s *Sweeper) sweep(ctx context.Context) error {
	ids, err := s.Journals.Batches(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		b, err := s.Batches.Batch(ctx, "", id)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return err
		case !b.State.Terminal() || s.Expiry().Sub(b.EndedAt()) < store.JournalRetention:
			continue
		}
		if err := s.Journals.Remove(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
