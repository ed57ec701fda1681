package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/tidefill/tidefill/store"
)

// sweepEvery is how often journals of ended batches are looked for.
const sweepEvery = 5 * time.Minute

// sweepJournals removes the journals of batches that ended a while ago, or are gone.
func (s *session) sweepJournals(ctx context.Context) {
	for {
		if err := s.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "could not sweep journals", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(sweepEvery):
		}
	}
}

func (s *session) sweepOnce(ctx context.Context) error {
	ids, err := s.deps.Journals.Batches(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		b, err := s.deps.Metadata.Batch(ctx, "", id)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return err
		case !b.State.Terminal() || s.deps.Expiry().Sub(b.EndedAt()) < store.JournalLife:
			continue
		}
		if err := s.deps.Journals.Remove(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
