package dispatch_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// fullDisk refuses new blobs of a batch.
type fullDisk struct {
	dispatch.Blobs
	batch string
}

func (d fullDisk) Create(ctx context.Context, key string) (store.BlobWriter, error) {
	if strings.Contains(key, d.batch) {
		return nil, store.ErrNoSpace
	}
	return d.Blobs.Create(ctx, key)
}

// loads counts how often the lines of a batch are to be loaded.
type loads struct {
	dispatch.Metadata
	batch string
	of    events
}

func (l *loads) Parameters(ctx context.Context, batch string) (store.Parameters, error) {
	if batch == l.batch {
		l.of.add()
	}
	return l.Metadata.Parameters(ctx, batch)
}

// A batch that can't be ended on a full disk must not come back into the queue when the process
// begins to lead, which counts the lines left of all batches again.
func TestStoppedBatchLoadsNoMoreLines(t *testing.T) {
	w := newWorld(t)
	id := w.submit(chatLines(50, "m"), nil)
	asked, list := &events{}, make(chan struct{})
	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			io.WriteString(w, okBody)
			return
		}
		asked.add()
		select {
		case <-list:
			json.NewEncoder(w).Encode(map[string]any{"data": []any{map[string]string{"id": "m"}}})
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(late.Close)
	counted := &loads{Metadata: w.meta, batch: id}
	w.modify(id, func(b *store.Batch) {
		b.State, b.Ending, b.CancellingAt = store.Cancelling, store.Cancelled, time.Now()
	})
	w.dispatcher("a", func(_ *dispatch.Config, d *dispatch.Deps) {
		d.Blobs, d.Metadata = fullDisk{d.Blobs, id}, counted
	}, late.URL)
	full := func(store.Batch) bool { return w.waitsFor(id, plan.DiskFull) }
	asked.await(t, 1)
	w.await(id, "waiting for the disk", full)
	close(list)
	// This batch is behind the other, had that come back.
	if b := w.awaitEnd(w.submit(chatLines(5, "m"), nil)); b.State != store.Completed {
		t.Errorf("the other batch is %s", b.State)
	}
	if n := counted.of.count(); n > 0 {
		t.Errorf("lines of the cancelled batch were loaded %d times", n)
	}
	if !full(store.Batch{}) {
		t.Errorf("it waits for %q", w.progress(id).Waiting)
	}
}
