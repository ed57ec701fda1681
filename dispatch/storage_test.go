package dispatch_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/dispatch/plan"
	servers "github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/places"
)

// warnings collects the messages of a log at Warn and above.
type warnings struct {
	slog.Handler
	mu  sync.Mutex
	all []string
}

func (w *warnings) Enabled(context.Context, slog.Level) bool { return true }

func (w *warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	w.all = append(w.all, text)
	return nil
}

// with returns the messages that contain a text.
func (w *warnings) with(text string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.all), func(s string) bool {
		return !strings.Contains(s, text)
	})
}

// withPlaces gives a dispatcher the storages of profiles.
func withPlaces(t *testing.T, log slog.Handler) (*places.Places,
	func(*dispatch.Config, *dispatch.Deps)) {
	p := places.New(places.Options{AskAfter: time.Millisecond})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, func(_ *dispatch.Config, d *dispatch.Deps) {
		d.Places = p
		if log != nil {
			d.Logger = slog.New(log)
		}
	}
}

// countedPlaces counts the tries to end batches: each asks for the storage first.
type countedPlaces struct {
	*places.Places
	of atomic.Int64
}

func (p *countedPlaces) Of(s store.Storage) store.Blobs {
	p.of.Add(1)
	return p.Places.Of(s)
}

// submitTo submits a batch whose results go to a storage.
func (w *world) submitTo(s store.Storage, lines int) string {
	w.t.Helper()
	return w.submit(chatLines(lines, "m"), func(b *store.Batch) { b.Options.Storage = &s })
}

// A storage that is away delays the end of its batches only. They end when it is back.
func TestStorageOfAProfileComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	log := &warnings{}
	p, with := withPlaces(t, log)
	asked := &countedPlaces{Places: p}
	w.dispatcher("one", func(c *dispatch.Config, d *dispatch.Deps) {
		with(c, d)
		d.Places = asked
	}, serve(t, nil, "m").URL)
	mount := filepath.Join(t.TempDir(), "mount") // does not exist yet
	storage := store.Storage{Backend: "local", Bucket: filepath.Join(mount, "results")}
	away := w.submitTo(storage, 5)
	waiting := plan.StorageAway.Because("The storage of the batch's profile does not take its " +
		"results: its directory can't be used.")
	until(t, "the batch waits for its storage", func() bool {
		return w.progress(away).Waiting == waiting
	})
	if other := w.awaitEnd(w.submit(chatLines(3, "m"), nil)); other.Counts.Completed != 3 {
		t.Errorf("another batch ended with %+v", other.Counts)
	}
	if b := w.batch(away); b.State != store.Finalizing {
		t.Errorf("the batch is %s, want it finalizing", b.State)
	}
	tries := asked.of.Load()
	until(t, "it was tried again, and that try has ended", func() bool {
		return asked.of.Load() >= tries+2
	})
	if said := log.with("does not take its results"); len(said) != 1 ||
		!strings.Contains(said[0], mount) {
		t.Errorf("logged %q, want one warning with the directory", said)
	}
	if err := os.Mkdir(mount, 0o700); err != nil {
		t.Fatal(err)
	}
	b := w.awaitEnd(away)
	if b.State != store.Completed || b.Counts.Completed != 5 || !b.Outputs[0].HasOutput {
		t.Fatalf("the batch ended %s with %+v", b.State, b.Counts)
	}
	f, err := w.meta.File(t.Context(), "default", b.Outputs[0].OutputID)
	if err != nil {
		t.Fatal(err)
	}
	if f.Storage == nil || *f.Storage != storage {
		t.Errorf("the file is in %+v, want %+v", f.Storage, storage)
	}
	if got := readAll(t, p.Of(storage), f.BlobKey); strings.Count(got, "\n") != 5 ||
		int64(len(got)) != f.Bytes {
		t.Errorf("the file has %d bytes, want %d: %q", len(got), f.Bytes, got)
	}
	for _, key := range w.blobs() {
		if strings.Contains(key, f.ID) {
			t.Errorf("the result is in the daemon's store as well: %s", key)
		}
	}
}

// A bucket fails in the middle of writing results, and later has all of them, each once.
func TestBucketOfAProfileFailsWhileResultsAreWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, with := withPlaces(t, nil)
	w.dispatcher("one", with, serve(t, nil, "m").URL)
	proxy := servers.StartProxy(t, servers.Start(t))
	secret := t.TempDir()
	for name, value := range map[string]string{"access-key-id": servers.AccessKey,
		"secret-access-key": servers.SecretKey} {
		if err := os.WriteFile(filepath.Join(secret, name), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Choose(func(r *http.Request) servers.Fault { // it can be asked, but takes nothing
		if r.Method == http.MethodPut {
			return servers.Error
		}
		return servers.None
	})
	storage := store.Storage{Backend: "minio", Bucket: servers.Bucket, EndpointURL: proxy.URL,
		Credentials: secret}
	id := w.submitTo(storage, 20)
	until(t, "the batch waits for its bucket", func() bool {
		return strings.HasPrefix(w.progress(id).Waiting, "storage_away: The storage of the "+
			"batch's profile does not take its results: it does not answer.")
	})
	proxy.Choose(nil)
	b := w.awaitEnd(id)
	f, err := w.meta.File(t.Context(), "default", b.Outputs[0].OutputID)
	if err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, p.Of(storage), f.BlobKey); strings.Count(got, "\n") != 20 {
		t.Errorf("the file has %q, want 20 lines", got)
	}
	eventually(t, "only the file with a record", func() bool {
		page, err := p.Of(storage).List(t.Context(), store.ResultPrefix, "", 0)
		return err == nil && len(page) == 1 && page[0].Key == f.BlobKey
	})
}

func readAll(t testing.TB, from store.Blobs, key string) string {
	t.Helper()
	blob, err := from.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	content, err := io.ReadAll(io.NewSectionReader(blob, 0, blob.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// What a try has left that crashed between the commit of a blob and its record is removed by the
// try that succeeds. Blobs of other batches stay.
func TestNextTryRemovesWhatACrashLeftInAStorage(t *testing.T) {
	w := newWorld(t)
	p, with := withPlaces(t, nil)
	storage := store.Storage{Backend: "local", Bucket: filepath.Join(t.TempDir(), "results")}
	put := func(key string) {
		blob, err := p.Of(storage).Create(t.Context(), key)
		if err == nil {
			err = blob.Commit(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	id := w.submitTo(storage, 3)
	put(store.ResultKey(id, "file-out"+id, 0))
	put(store.ResultKey("batch_other", "file-x", 0))
	w.dispatcher("one", with, serve(t, nil, "m").URL)
	b := w.awaitEnd(id)
	f, err := w.meta.File(t.Context(), "default", b.Outputs[0].OutputID)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{f.BlobKey, store.ResultKey("batch_other", "file-x", 0)}
	eventually(t, "only files with records and those of others", func() bool {
		page, err := p.Of(storage).List(t.Context(), store.ResultPrefix, "", 0)
		var keys []string
		for _, b := range page {
			keys = append(keys, b.Key)
		}
		return err == nil && slices.Equal(keys, want)
	})
}

// Credentials that are missing delay the batch as a storage that is away does, and so does a
// process that opens no storages.
func TestBatchWaitsForCredentials(t *testing.T) {
	for cause, places := range map[string]bool{"the Secret results can't be read": true,
		"this process opens no storages": false} {
		w := newWorld(t)
		_, with := withPlaces(t, nil)
		if !places {
			with = nil
		}
		w.dispatcher("one", with, serve(t, nil, "m").URL)
		id := w.submitTo(store.Storage{Backend: "s3", Bucket: "results", Credentials: "results"},
			2)
		until(t, "the batch waits", func() bool {
			text := w.progress(id).Waiting
			return plan.ReasonOf(text) == plan.StorageAway && strings.Contains(text, cause)
		})
	}
}
