package finish

import (
	"context"
	"strconv"

	"github.com/tidefill/tidefill/store"
)

// Places opens the storages of profiles.
type Places interface {
	Of(s store.Storage) store.Blobs
}

// target is where the result files of a batch go.
type target struct {
	Blobs
	place store.Blobs // of the storage of the batch's profile; nil: Blobs is the backend's
}

// targetOf returns the target of a batch.
func (fz *Finalizer) targetOf(b *store.Batch) (target, error) {
	storage := b.Options.Storage
	if storage == nil {
		return target{Blobs: fz.Blobs}, nil
	}
	if fz.Places == nil {
		return target{}, store.NoPlace(*storage)
	}
	place := fz.Places.Of(*storage)
	return target{place, place}, nil
}

// keyOf returns the key of a result file.
func (e *ending) keyOf(file string) string {
	if e.target.place != nil {
		return store.ResultKey(e.batch.ID, file, e.epoch)
	}
	return "files/" + file + "." + strconv.FormatInt(e.epoch, 10)
}

// dropLeftovers removes the files of an ended batch that earlier tries have left in the storage of
// its profile, as after a crash. The search for orphans does it for the backend's own blobs, and
// for what this one can't remove as long as a profile names the storage.
func (e *ending) dropLeftovers(ctx context.Context) {
	place := e.target.place
	if place == nil {
		return
	}
	found, err := place.List(ctx, store.ResultsOf(e.batch.ID), "", 0)
	if err == nil {
		keys := make([]string, len(found))
		for i, b := range found {
			keys[i] = b.Key
		}
		err = store.RemoveBlobs(ctx, e.fz.Metadata, place, "", keys...) // those in use stay
	}
	if err != nil {
		e.fz.Log.WarnContext(ctx, "could not remove what earlier tries have left of the results",
			"batch_id", e.batch.ID, "error", err)
	}
}
