package dispatch

import (
	"context"
	"errors"

	"github.com/tidefill/tidefill/store"
)

// dropInputs removes the bytes of inputs that were deleted while the batch still needed them.
func (s *session) dropInputs(ctx context.Context, b *store.Batch) {
	for _, in := range b.Inputs {
		if _, err := s.deps.Metadata.File(ctx, b.Tenant, in.FileID); !errors.Is(err, store.ErrNotFound) || s.inUse(b.ID, in.BlobKey) {
			continue
		}
		if err := errors.Join(s.deps.Blobs.Delete(ctx, in.BlobKey), s.deps.Blobs.Delete(ctx, in.IndexKey)); err != nil {
			s.log.WarnContext(ctx, "could not remove the bytes of a deleted input", "file_id", in.FileID, "error", err)
		}
	}
}

// inUse reports whether a living batch other than the given one reads the blob.
func (s *session) inUse(batch, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.runs {
		if id != batch && r.reads(key) {
			return true
		}
	}
	return false
}

func (r *run) reads(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.batch.State.Terminal() {
		return false
	}
	for _, in := range r.batch.Inputs {
		if in.BlobKey == key {
			return true
		}
	}
	return false
}
