package dispatch

import (
	"context"

	"github.com/tidefill/tidefill/store"
)

// announcing is metadata that reports the batches that this process changes, so that others need
// not wait for their next poll.
type announcing struct {
	Metadata
	changed func(batch string)
}

// UpdateBatch implements [Metadata].
func (a announcing) UpdateBatch(ctx context.Context, b store.Batch) (store.Batch, error) {
	b, err := a.Metadata.UpdateBatch(ctx, b)
	if err == nil {
		a.changed(b.ID)
	}
	return b, err
}

// FinishBatch implements [Metadata].
func (a announcing) FinishBatch(
	ctx context.Context, o store.Owner, lock string, epoch int64, b store.Batch,
	files []store.File,
) (store.Batch, error) {
	b, err := a.Metadata.FinishBatch(ctx, o, lock, epoch, b, files)
	if err == nil {
		a.changed(b.ID)
	}
	return b, err
}
