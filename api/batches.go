package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

func (s *Server) batchRoutes() {
	s.route("/v1/batches", methods{"POST": s.createBatch, "GET": s.listBatches})
	s.route("/v1/batches/{id}", methods{"GET": s.getBatch, "POST": s.modifyBatch,
		"DELETE": s.deleteBatch})
	s.route("/v1/batches/{id}/cancel", methods{"POST": s.cancelBatch})
	s.route("/v1/batches/{id}/pause", methods{"POST": s.pauseBatch})
	s.route("/v1/batches/{id}/resume", methods{"POST": s.resumeBatch})
	s.route("/v1/batches/{id}/retry", methods{"POST": s.retryBatch})
	s.route("/v1/batches/{id}/results", methods{"GET": s.batchResults})
	s.route("/v1/batches/{id}/events", methods{"GET": s.batchEvents})
}

// batch returns the batch that the path names.
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
	ctx := r.Context()
	page, err := s.meta.ListBatchIDs(ctx, tenantOf(ctx), q)
	if err != nil {
		return fmt.Errorf("list batches: %w", err)
	}
	list := newListWriter(w, func(b batchObject) string { return b.ID })
	for ids := range slices.Chunk(page.Items, batchesAtOnce) {
		shown, err := s.listed(ctx, q, ids)
		if err == nil {
			err = list.send(shown...)
		}
		if err != nil {
			return fmt.Errorf("list batches: %w", err)
		}
	}
	return list.end(page.More)
}

const (
	// batchesAtOnce is the number of batches of a listing that are in memory at once.
	batchesAtOnce = 4
	// listedFaults limits the errors of a batch that a listing shows.
	listedFaults = 20
)

// listed reads batches for a listing. It leaves out those that were deleted, or changed to a status
// that was not asked for, since the ids were read.
func (s *Server) listed(
	ctx context.Context, q store.BatchQuery, ids []string,
) ([]batchObject, error) {
	batches := make([]store.Batch, 0, len(ids))
	for _, id := range ids {
		b, err := s.meta.Batch(ctx, tenantOf(ctx), id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case err != nil:
			return nil, err
		case len(q.States) > 0 && !slices.Contains(q.States, b.State):
			continue
		}
		b.Errors = firstFaults(b.Errors)
		batches = append(batches, b)
	}
	return s.show(ctx, batches...)
}

// firstFaults shortens a list of errors to those that a listing shows.
func firstFaults(faults []batchfile.Fault) []batchfile.Fault {
	hidden := len(faults) - listedFaults
	if hidden <= 1 {
		return faults
	}
	return append(slices.Clone(faults[:listedFaults]), batchfile.Fault{
		Code: codeMoreFaults,
		Message: fmt.Sprintf("%d more errors are not listed here; read the batch by its id.",
			hidden),
	})
}

// errUnchanged ends a change that has nothing to do.
var errUnchanged = errors.New("nothing to change")

// changeBatch calls change for the batch that the path names, stores the result with a note of what
// was done, logs that, and answers with the batch. change returns an *httpError to refuse, and
// errUnchanged if the batch needs no change.
func (s *Server) changeBatch(
	w http.ResponseWriter, r *http.Request, done string, change func(*store.Batch) error,
) error {
	id := r.PathValue("id")
	by := principalOf(r.Context())
	b, err := store.Modify(r.Context(), s.meta, by.Tenant, id, func(b *store.Batch) error {
		if err := change(b); err != nil {
			return err
		}
		b.Note(store.Change{At: s.now(), What: done, By: by.Key})
		return nil
	})
	switch {
	case errors.Is(err, errUnchanged):
	case err != nil:
		return named(fmt.Errorf("change batch %s: %w", id, err), "Batch", id)
	default:
		s.audit(r.Context(), "batch "+done, b.LogArgs()...)
		s.nudge(id)
	}
	return s.writeBatch(r.Context(), w, b)
}

// audit logs what a user did, and whose key it was.
func (s *Server) audit(ctx context.Context, done string, args ...any) {
	by := principalOf(ctx)
	if by.Key != "" {
		args = append(args, "key", by.Key, "role", by.Role)
	}
	s.log.InfoContext(ctx, done, args...)
}

// wrongStatus returns the answer to an action that the status of the batch does not allow. SDKs
// retry a 409, which would not help here.
func wrongStatus(action string, b *store.Batch) *httpError {
	return &httpError{
		Status:  http.StatusConflict,
		Type:    invalidRequest,
		Code:    "invalid_batch_status",
		Message: fmt.Sprintf("Cannot %s a batch with status '%s'.", action, b.State),
		NoRetry: true,
	}
}

// modifyBatch answers POST /v1/batches/{id}, which changes what may change after the creation: the
// priority.
func (s *Server) modifyBatch(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.batch(r); err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	priority, err := readModification(body)
	if err != nil {
		return err
	}
	return s.changeBatch(w, r, fmt.Sprintf("given the priority %d", priority),
		func(b *store.Batch) error {
			switch {
			case b.State.Terminal():
				return wrongStatus("change the priority of", b)
			case b.Options.Priority == priority:
				return errUnchanged
			}
			b.Options.Priority = priority
			return checkPriority(b.Resolved, priority)
		})
}

func readModification(body []byte) (priority int, err error) {
	request, err := readObject(body)
	if err != nil {
		return 0, err
	}
	for _, key := range request.keys() {
		if key != extensionsKey {
			request.fail(key, "unknown_parameter",
				"'%s' can't be changed; only '%s.priority' can.", key, extensionsKey)
		}
	}
	if o, ok := request.object(extensionsKey); !ok {
		request.missing(extensionsKey)
	} else if !o.has("priority") {
		o.missing("priority")
	} else {
		priority = readPriority(o)
		_ = o.finish() // request has its fault
	}
	return priority, request.finish()
}

func readPriority(o *jsonObject) int { return int(o.integer("priority", -100, 100, 0)) }

func (s *Server) pauseBatch(w http.ResponseWriter, r *http.Request) error {
	return s.changeBatch(w, r, "paused", func(b *store.Batch) error {
		if b.State != store.Validating && b.State != store.InProgress {
			return wrongStatus("pause", b)
		}
		return setPaused(b, true)
	})
}

func (s *Server) resumeBatch(w http.ResponseWriter, r *http.Request) error {
	return s.changeBatch(w, r, "resumed", func(b *store.Batch) error {
		if b.State.Terminal() {
			return wrongStatus("resume", b)
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

// deleteBatch removes an ended batch. Its result files stay; they belong to the user. The record is
// deleted first, so that nobody reads a batch without its journals. Journals that remain after a
// crash or an error are removed by the dispatchers, which look for journals without a batch.
func (s *Server) deleteBatch(w http.ResponseWriter, r *http.Request) error {
	b, err := s.batch(r)
	if err != nil {
		return err
	}
	if !b.State.Terminal() {
		return wrongStatus("delete", &b)
	}
	if _, err := s.meta.DeleteBatch(r.Context(), b.Tenant, b.ID); err != nil {
		return named(fmt.Errorf("delete batch %s: %w", b.ID, err), "Batch", b.ID)
	}
	s.audit(r.Context(), "batch deleted", b.LogArgs()...)
	ctx, cancel := cleanupContext(r.Context())
	defer cancel()
	if err := s.deps.Journals.Remove(ctx, b.ID); err != nil {
		s.log.WarnContext(ctx,
			"journals of a deleted batch were not removed; the next sweep retries",
			"batch_id", b.ID, "tenant", b.Tenant, "error", err)
	}
	return writeJSON(w, deletedObject{ID: b.ID, Object: "batch", Deleted: true})
}
