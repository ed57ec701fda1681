package api

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/tidefill/tidefill/store"
)

func (s *Server) batchRoutes() {
	s.route("/v1/batches", methods{"POST": s.createBatch, "GET": s.listBatches})
	s.route("/v1/batches/{id}", methods{"GET": s.getBatch, "DELETE": s.deleteBatch})
	s.route("/v1/batches/{id}/cancel", methods{"POST": s.cancelBatch})
	s.route("/v1/batches/{id}/pause", methods{"POST": s.pauseBatch})
	s.route("/v1/batches/{id}/resume", methods{"POST": s.resumeBatch})
	s.route("/v1/batches/{id}/retry", methods{"POST": s.retryBatch})
	s.route("/v1/batches/{id}/results", methods{"GET": s.batchResults})
	s.route("/v1/batches/{id}/events", methods{"GET": s.batchEvents})
}

// batch finds the batch that the path names.
func (s *Server) batch(r *http.Request) (store.Batch, error) {
	id := r.PathValue("id")
	b, err := s.meta.Batch(r.Context(), tenantOf(r.Context()), id)
	if err != nil {
		return store.Batch{}, named(fmt.Errorf("read batch %s: %w", id, err), "Batch", id)
	}
	return b, nil
}

func (s *Server) getBatch(w http.ResponseWriter, r *http.Request) error {
	b, err := s.batch(r)
	if err != nil {
		return err
	}
	return s.writeBatch(r.Context(), w, b)
}

func (s *Server) listBatches(w http.ResponseWriter, r *http.Request) error {
	q, err := readBatchQuery(r.URL.Query())
	if err != nil {
		return err
	}
	page, err := s.meta.ListBatches(r.Context(), tenantOf(r.Context()), q)
	if err != nil {
		return fmt.Errorf("list batches: %w", err)
	}
	shown, err := s.show(r.Context(), page.Items...)
	if err != nil {
		return err
	}
	list := listObject[batchObject]{Object: "list", Data: shown, HasMore: page.More}
	if n := len(shown); n > 0 {
		list.FirstID, list.LastID = &shown[0].ID, &shown[n-1].ID
	}
	return writeJSON(w, list)
}

// errUnchanged ends a change that would change nothing.
var errUnchanged = errors.New("nothing to change")

// changeBatch lets change edit the batch that the path names and answers with the result. change tells what can't be
// done with an *Error, and errUnchanged when the batch is already as wanted.
func (s *Server) changeBatch(w http.ResponseWriter, r *http.Request, change func(*store.Batch) error) error {
	id := r.PathValue("id")
	b, err := store.Modify(r.Context(), s.meta, tenantOf(r.Context()), id, change)
	switch {
	case errors.Is(err, errUnchanged):
	case err != nil:
		return named(fmt.Errorf("change batch %s: %w", id, err), "Batch", id)
	default:
		s.nudge(id)
	}
	return s.writeBatch(r.Context(), w, b)
}

// refused is a deed that a batch's state doesn't allow. SDKs would send a 409 again, and get it again.
func refused(deed string, b *store.Batch) *Error {
	return &Error{
		Status:  http.StatusConflict,
		Type:    invalidRequest,
		Code:    "invalid_batch_status",
		Message: fmt.Sprintf("Cannot %s a batch with status '%s'.", deed, b.State),
		NoRetry: true,
	}
}

func (s *Server) cancelBatch(w http.ResponseWriter, r *http.Request) error {
	return s.changeBatch(w, r, func(b *store.Batch) error {
		if b.State.Terminal() {
			return refused("cancel", b)
		}
		if b.State == store.Cancelling {
			return errUnchanged
		}
		b.State, b.Ending, b.CancellingAt = store.Cancelling, store.Cancelled, s.now()
		b.Paused = false
		return nil
	})
}

func (s *Server) pauseBatch(w http.ResponseWriter, r *http.Request) error {
	return s.changeBatch(w, r, func(b *store.Batch) error {
		if b.State != store.Validating && b.State != store.InProgress {
			return refused("pause", b)
		}
		return setPaused(b, true)
	})
}

func (s *Server) resumeBatch(w http.ResponseWriter, r *http.Request) error {
	return s.changeBatch(w, r, func(b *store.Batch) error {
		if b.State.Terminal() {
			return refused("resume", b)
		}
		return setPaused(b, false)
	})
}

func setPaused(b *store.Batch, paused bool) error {
	if b.Paused == paused {
		return errUnchanged
	}
	b.Paused = paused
	return nil
}

// deleteBatch removes an ended batch. Its result files are the user's, and live on. The row goes first, so that nobody reads
// a batch that is half gone; journals that stay, by a crash or a fault, are removed by the dispatchers' sweeper, which looks
// for those of batches that are no more.
func (s *Server) deleteBatch(w http.ResponseWriter, r *http.Request) error {
	b, err := s.batch(r)
	if err != nil {
		return err
	}
	if !b.State.Terminal() {
		return refused("delete", &b)
	}
	if _, err := s.meta.DeleteBatch(r.Context(), b.Tenant, b.ID); err != nil {
		return named(fmt.Errorf("delete batch %s: %w", b.ID, err), "Batch", b.ID)
	}
	ctx, cancel := leave(r.Context())
	defer cancel()
	if err := s.deps.Journals.Remove(ctx, b.ID); err != nil {
		s.log.WarnContext(ctx, "journals of deleted batch stay until the next sweep", "batch_id", b.ID, "tenant", b.Tenant, "error", err)
	}
	return writeJSON(w, deletedObject{ID: b.ID, Object: "batch", Deleted: true})
}
