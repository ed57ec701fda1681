package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
)

// runAgain puts a batch back to work whose journals have lost results since their chunks were told
// done, by damage to the files. What is left in them stands; the rest runs again. Nothing else
// leads back from finalizing.
func (rc *reconciler) runAgain(ctx context.Context, id string, lost []store.Chunk) error {
	rc.log.ErrorContext(ctx, "journals have lost results, running their lines again", "batch_id", id,
		"chunks", len(lost))
	for _, c := range lost {
		if err := rc.metadata.ReopenChunk(ctx, c); err != nil {
			return err
		}
	}
	_, err := store.Modify(ctx, rc.metadata, "", id, func(b *store.Batch) error {
		if b.State != store.Finalizing || b.Ending != store.Completed {
			return errMovedOn
		}
		b.State, b.Ending, b.FinalizingAt = store.InProgress, "", time.Time{}
		return nil
	})
	if err != nil && !errors.Is(err, errMovedOn) {
		return fmt.Errorf("put batch %s back to work: %w", id, err)
	}
	rc.queue.add(id)
	return nil
}
