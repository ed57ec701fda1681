package dispatch

import (
	"context"

	"github.com/tidefill/tidefill/store"
)

// dropInputs removes the bytes of inputs that were deleted while the ended batch still needed them.
func (s *session) dropInputs(ctx context.Context, b *store.Batch) {
	for _, in := range b.Inputs {
		if err := store.RemoveBlobs(ctx, s.deps.Metadata, s.deps.Blobs, "", in.BlobKey,
			in.IndexKey); err != nil {
			s.log.WarnContext(ctx, "could not remove the bytes of a deleted input",
				"batch_id", b.ID, "file_id", in.FileID, "error", err)
		}
	}
}
