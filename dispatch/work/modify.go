package work

import (
	"context"
	"errors"

	"github.com/tidefill/tidefill/store"
)

// Batches is the part of the store that [ModifyIf] needs.
type Batches interface {
	Batch(ctx context.Context, tenant, id string) (store.Batch, error)
	UpdateBatch(ctx context.Context, b store.Batch) (store.Batch, error)
}

// errUnchanged reports that a batch needs no change.
var errUnchanged = errors.New("unchanged")

// ModifyIf changes a batch in the store, unless change returns false: the batch is past the state
// that the change is for.
func ModifyIf(
	ctx context.Context, batches Batches, id string, change func(b *store.Batch) bool,
) (b store.Batch, changed bool, err error) {
	b, err = store.Modify(ctx, batches, "", id, func(b *store.Batch) error {
		if !change(b) {
			return errUnchanged
		}
		return nil
	})
	if errors.Is(err, errUnchanged) {
		return b, false, nil
	}
	return b, err == nil, err
}
