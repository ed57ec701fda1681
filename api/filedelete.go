package api

import (
	"context"
	"errors"
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
	ctx, cancel := leave(r.Context())
	defer cancel()
	if err := s.removeBytes(ctx, f); err != nil {
		// The file is gone for its user, whatever becomes of its bytes.
		s.log.ErrorContext(ctx, "bytes of deleted file stay", "file_id", f.ID, "tenant", f.Tenant, "error", err)
	}
	return writeJSON(w, deletedObject{ID: f.ID, Object: "file", Deleted: true})
}

// removeBytes deletes the blobs of a file whose row is gone, unless a living batch reads them: then whoever ends that
// batch does.
func (s *Server) removeBytes(ctx context.Context, f store.File) error {
	if f.Purpose == purposeBatch {
		inUse, err := s.inUse(ctx, f)
		if err != nil || inUse {
			return err
		}
	}
	err := s.blobs.Delete(ctx, f.BlobKey)
	if f.IndexKey != "" {
		err = errors.Join(err, s.blobs.Delete(ctx, f.IndexKey))
	}
	if err != nil {
		return fmt.Errorf("remove bytes of file %s: %w", f.ID, err)
	}
	return nil
}

// inUse reports whether a living batch of the file's tenant reads it.
func (s *Server) inUse(ctx context.Context, f store.File) (bool, error) {
	q := store.BatchQuery{
		Limit:  100,
		States: []store.State{store.Validating, store.InProgress, store.Finalizing, store.Cancelling},
	}
	for {
		page, err := s.meta.ListBatches(ctx, f.Tenant, q)
		if err != nil {
			return false, fmt.Errorf("find batches that read file %s: %w", f.ID, err)
		}
		for _, b := range page.Items {
			for _, input := range b.Inputs {
				if input.BlobKey == f.BlobKey {
					return true, nil
				}
			}
			q.After = b.ID
		}
		if !page.More {
			return false, nil
		}
	}
}
