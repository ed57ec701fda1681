package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tidefill/tidefill/store"
)

type deletedObject struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

func (s *Server) deleteFile(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	f, err := s.meta.DeleteFile(r.Context(), tenantOf(r.Context()), id)
	if err != nil {
		return named(err, "File", id)
	}
	s.audit(r.Context(), "file deleted", "file_id", f.ID, "tenant", f.Tenant, "bytes", f.Bytes)
	ctx, cancel := cleanupContext(r.Context())
	defer cancel()
	if err := s.removeBytes(ctx, f); err != nil {
		// The file is deleted for its user. The search for orphans removes its bytes.
		s.log.ErrorContext(ctx, "bytes of a deleted file were not removed", "file_id", f.ID,
			"tenant", f.Tenant, "key", f.BlobKey, "error", err)
	}
	return writeJSON(w, deletedObject{ID: f.ID, Object: "file", Deleted: true})
}

// removeBytes deletes the blobs of a file whose record is deleted, or is about to be. Blobs that a
// running batch reads stay; they are deleted when that batch ends.
func (s *Server) removeBytes(ctx context.Context, f store.File) error {
	blobs, err := s.blobsOf(f)
	if err == nil {
		err = store.RemoveBlobs(ctx, s.meta, blobs, f.ID, f.BlobKey, f.IndexKey)
	}
	if err != nil {
		return fmt.Errorf("remove bytes of file %s: %w", f.ID, err)
	}
	return nil
}
