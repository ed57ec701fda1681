package store

import (
	"context"
	"errors"
	"fmt"
)

// Modify reads a batch, lets change edit it and writes it back, again and again until nobody
// interfered. It returns an error of change as it is, and writes nothing then. ErrConflict: the
// batch is terminal.
func Modify(
	ctx context.Context, batches batchUpdater, tenant, id string, change func(*Batch) error,
) (Batch, error) {
	for {
		b, err := batches.Batch(ctx, tenant, id)
		if err != nil {
			return Batch{}, err
		}
		frozen := b.State.Terminal()
		if err := change(&b); err != nil {
			return b, err
		}
		if frozen {
			return b, fmt.Errorf("modify batch %s, which is %s: %w", id, b.State, ErrConflict)
		}
		updated, err := batches.UpdateBatch(ctx, b)
		if !errors.Is(err, ErrConflict) {
			return updated, err
		}
		if err := ctx.Err(); err != nil {
			return Batch{}, err
		}
	}
}

// batchUpdater is the part of Batches that Modify needs.
type batchUpdater interface {
	Batch(ctx context.Context, tenant, id string) (Batch, error)
	UpdateBatch(ctx context.Context, b Batch) (Batch, error)
}
