package dispatch

import (
	"context"
	"strings"
	"time"

	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// unservedFaults returns a fault for each model of a batch that no runner serves and of which no
// line has run, and a reason for all of them. A model of which lines have run was served, and may
// be again.
func (rc *reconciler) unservedFaults(
	ctx context.Context, b *store.Batch,
) (reason string, faults []batchfile.Fault, err error) {
	if b.Resolved != nil && b.Resolved.Template != "" {
		return "", nil, nil // it waits where its template sends it
	}
	var models []string
	left := rc.remaining.Of(b)
	for _, m := range b.Models {
		if left(m.Model) == m.Lines {
			models = append(models, m.Model)
		}
	}
	sentences, err := rc.catalog.unserved(ctx, models)
	if err != nil {
		return "", nil, err
	}
	if len(sentences) == 0 {
		return "", nil, nil
	}
	begun, err := rc.begunModels(ctx, b)
	if err != nil {
		return "", nil, err
	}
	var all []string
	for _, m := range models {
		if sentence := sentences[m]; sentence != "" && !begun[m] {
			faults = append(faults, batchfile.Fault{Code: batchfile.CodeModelNotFound,
				Message: sentence, Param: "body.model"})
			if len(all) < maxNames {
				all = append(all, sentence)
			}
		}
	}
	return strings.Join(all, " "), faults, nil
}

// begunModels returns the models of a batch of which a chunk has been claimed, which only a process
// with a runner for them does. Lines may be done though no chunk is.
func (rc *reconciler) begunModels(
	ctx context.Context, b *store.Batch,
) (begun map[string]bool, err error) {
	chunks, err := rc.metadata.Chunks(ctx, b.ID)
	begun = map[string]bool{}
	for _, c := range chunks {
		if c.Epoch > 0 {
			begun[c.Model] = true
		}
	}
	return begun, err
}

// failUnserved fails a new batch, of which nothing has run, if no runner serves one of its models.
func (rc *reconciler) failUnserved(ctx context.Context, b *store.Batch) (failed bool, err error) {
	_, faults, err := rc.unservedFaults(ctx, b)
	if err != nil || len(faults) == 0 {
		return false, err
	}
	ended, is, err := work.ModifyIf(ctx, rc.metadata, b.ID, func(b *store.Batch) bool {
		if b.State != store.Validating {
			return false
		}
		b.State, b.FailedAt, b.Errors = store.Failed, time.Now(), faults
		b.Counts = store.Counts{} // as if it had failed when it was created
		return true
	})
	if is {
		rc.Ended(ctx, &ended)
	}
	return err == nil, err
}

// stopUnserved stops a batch in progress if no runner serves one of its models, which was not known
// when it was created. The lines of other models that are done keep their results.
func (rc *reconciler) stopUnserved(ctx context.Context, b *store.Batch) (stopped bool, err error) {
	reason, faults, err := rc.unservedFaults(ctx, b)
	if err != nil || len(faults) == 0 {
		return false, err
	}
	rc.Log.InfoContext(ctx, "stopping a batch", "batch_id", b.ID,
		"code", batchfile.CodeModelNotFound)
	return true, rc.finalizeAs(ctx, b.ID, store.Failed, reason, faults...)
}
