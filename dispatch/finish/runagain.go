package finish

import (
	"context"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// runAgain moves a batch back to in_progress whose journals have lost results since their chunks
// were done, by damage to the files. The lines that lost their results run again. Nothing else
// leads back from finalizing.
func (fz *Finalizer) runAgain(ctx context.Context, id string, lost []store.Chunk) error {
	fz.Log.ErrorContext(ctx, "journals have lost results, running their lines again",
		"batch_id", id,
		"chunks", len(lost))
	for _, c := range lost {
		if err := fz.Metadata.ReopenChunk(ctx, c); err != nil {
			return err
		}
	}
	_, _, err := work.ModifyIf(ctx, fz.Metadata, id, func(b *store.Batch) bool {
		if b.State != store.Finalizing || b.Ending != store.Completed {
			return false
		}
		b.State, b.Ending, b.FinalizingAt = store.InProgress, "", time.Time{}
		return true
	})
	if err != nil {
		return fmt.Errorf("move batch %s back to in_progress: %w", id, err)
	}
	fz.Batches.AddAfter(id, 0)
	return nil
}
