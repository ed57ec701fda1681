package dispatch_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

// freezer is a store that blocks its caller from the call that a test chooses until it thaws, as
// SIGSTOP does a process.
type freezer struct {
	dispatch.Metadata
	mu     sync.Mutex
	at     string // the method whose next call freezes; empty: none
	frozen chan struct{}
	thawed chan struct{}
}

func newFreezer(m dispatch.Metadata, at string) *freezer {
	return &freezer{Metadata: m, at: at, frozen: make(chan struct{}), thawed: make(chan struct{})}
}

// pass is called at the start of each method.
func (f *freezer) pass(method string) {
	f.mu.Lock()
	if method == f.at {
		f.at = ""
		close(f.frozen)
	}
	f.mu.Unlock()
	select {
	case <-f.frozen:
		<-f.thawed
	default:
	}
}

func (f *freezer) Renew(ctx context.Context, o store.Owner, ttl time.Duration) error {
	f.pass("Renew")
	return f.Metadata.Renew(context.WithoutCancel(ctx), o, ttl)
}

func (f *freezer) ChangedBatches(
	ctx context.Context, after store.Cursor, limit int,
) ([]string, store.Cursor, error) {
	f.pass("ChangedBatches")
	return f.Metadata.ChangedBatches(ctx, after, limit)
}

func (f *freezer) Batch(ctx context.Context, tenant, id string) (store.Batch, error) {
	f.pass("Batch")
	return f.Metadata.Batch(ctx, tenant, id)
}

func (f *freezer) Lock(ctx context.Context, o store.Owner, name string) (int64, bool, error) {
	f.pass("Lock")
	return f.Metadata.Lock(ctx, o, name)
}

func (f *freezer) Chunks(ctx context.Context, batch string) ([]store.Chunk, error) {
	f.pass("Chunks")
	return f.Metadata.Chunks(ctx, batch)
}

func (f *freezer) FinishBatch(
	ctx context.Context, o store.Owner, lock string, epoch int64, b store.Batch, files []store.File,
) (store.Batch, error) {
	f.pass("FinishBatch")
	return f.Metadata.FinishBatch(ctx, o, lock, epoch, b, files)
}

func (f *freezer) DropBlobs(ctx context.Context, expired string, keys ...string) ([]string, error) {
	f.pass("DropBlobs")
	return f.Metadata.DropBlobs(ctx, expired, keys...)
}

// blobs lists all blobs.
func (w *world) blobs() (keys []string) {
	w.t.Helper()
	for _, prefix := range []string{"files", "batches"} {
		list, err := w.disk.Blobs().List(w.t.Context(), prefix, "", 0)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, b := range list {
			keys = append(keys, b.Key)
		}
	}
	return keys
}

// deleteFile does what the API does.
func (w *world) deleteFile(id string) {
	w.t.Helper()
	f, err := w.meta.DeleteFile(w.t.Context(), "default", id)
	if err == nil {
		err = store.RemoveBlobs(w.t.Context(), w.meta, w.disk.Blobs(), "", f.BlobKey, f.IndexKey)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}

func TestDeletedResultStaysDeleted(t *testing.T) {
	for _, at := range []string{"Lock", "Chunks", "FinishBatch", "DropBlobs"} {
		t.Run("frozen at "+at, func(t *testing.T) {
			w := newWorld(t)
			gate := make(chan struct{})
			up := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				<-gate
				io.WriteString(w, okBody)
			}, "m")
			slowStore := newFreezer(w.meta, "")
			_, stopSlow := w.dispatcher("slow", func(c *dispatch.Config, d *dispatch.Deps) {
				d.Metadata = slowStore
			}, up.URL)
			id := w.submit(chatLines(5, "m"), nil)
			w.await(id, "laid out", func(b store.Batch) bool { return b.State == store.InProgress })
			eventually(t, "all lines in flight", func() bool {
				return w.progress(id).InFlight == 5
			})
			slowStore.mu.Lock()
			slowStore.at = at
			slowStore.mu.Unlock()
			close(gate)
			<-slowStore.frozen

			w.clock.Add(int64(time.Hour)) // its lease is over
			w.dispatcher("quick", nil, up.URL)
			b := w.awaitEnd(id)
			w.results(id)
			w.deleteFile(b.Outputs[0].OutputID)
			close(slowStore.thawed)
			next := w.submit(chatLines(3, "m"), nil)
			w.awaitEnd(next)
			stopSlow()

			if _, err := w.meta.File(t.Context(), "default", b.Outputs[0].OutputID); !errors.Is(
				err, store.ErrNotFound) {
				t.Errorf("the deleted result is back: %v", err)
			}
			for _, key := range w.blobs() {
				if strings.HasPrefix(key, "files/"+b.Outputs[0].OutputID) {
					t.Errorf("the bytes of the deleted result are back: %s", key)
				}
			}
			if again := w.batch(id); again.Version != b.Version {
				t.Errorf("the ended batch has changed from version %d to %d", b.Version,
					again.Version)
			}
			w.results(next)
		})
	}
}

// hidingStore hides a batch from a dispatcher, as if that had not polled since the batch was
// created.
type hidingStore struct {
	dispatch.Metadata
	hidden atomic.Pointer[string]
}

func (m *hidingStore) ChangedBatches(
	ctx context.Context, after store.Cursor, limit int,
) ([]string, store.Cursor, error) {
	ids, next, err := m.Metadata.ChangedBatches(ctx, after, limit)
	shown := ids[:0]
	for _, id := range ids {
		if hidden := m.hidden.Load(); hidden == nil || id != *hidden {
			shown = append(shown, id)
		}
	}
	return shown, next, err
}

func TestInputIsKeptForABatchOfAnotherProcess(t *testing.T) {
	w := newWorld(t)
	up := serve(t, nil, "m")
	first := w.submit(chatLines(5, "m"), nil)
	input := w.batch(first).Inputs[0]
	second := w.batch(first)
	second.ID, second.Outputs = "batch_second",
		[]store.Output{{Input: -1, OutputID: "file-out2", ErrorID: "file-err2"}}
	if err := w.meta.CreateBatch(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	w.deleteFile(input.FileID)
	hiding := &hidingStore{Metadata: w.meta}
	hiding.hidden.Store(&second.ID)
	_, stop := w.dispatcher("one", func(_ *dispatch.Config, d *dispatch.Deps) {
		d.Metadata = hiding
	}, up.URL)
	w.awaitEnd(first)
	stop()
	w.dispatcher("two", nil, up.URL)
	if b := w.awaitEnd(second.ID); b.State != store.Completed || b.Counts.Completed != 5 {
		t.Errorf("the second batch ended %s with %+v", b.State, b.Counts)
	}
	eventually(t, "the deleted input removed", func() bool {
		for _, key := range w.blobs() {
			if key == input.BlobKey || key == input.IndexKey {
				return false
			}
		}
		return true
	})
}
