package finish

import (
	"context"

	"github.com/tidefill/tidefill/store"
)

// dropInputs removes the bytes of inputs that were deleted while the batch needed them.
func (fz *Finalizer) dropInputs(ctx context.Context, b *store.Batch) {
	for _, in := range b.Inputs {
		if err := store.RemoveBlobs(ctx, fz.Metadata, fz.Blobs, "", in.BlobKey,
			in.IndexKey); err != nil {
			fz.Log.WarnContext(ctx, "could not remove the bytes of a deleted input",
				"batch_id", b.ID, "file_id", in.FileID, "error", err)
		}
	}
}
