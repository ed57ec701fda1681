package api

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/places"
)

// elsewhere is an API some of whose files are in the storage of a profile, a directory.
type elsewhere struct {
	*service
	at    store.Storage
	blobs store.Blobs
	names int
}

func newElsewhere(t *testing.T) *elsewhere {
	t.Helper()
	p := places.New(places.Options{AskAfter: time.Millisecond})
	t.Cleanup(func() { p.Close() })
	at := store.Storage{Backend: "local", Bucket: filepath.Join(t.TempDir(), "results")}
	catalogs := (&registry.Catalogs{}).Next(time.Now(), []registry.Document{{Name: "profiles.yaml",
		Text: fmt.Appendf(nil, "items:\n- {name: p, spec: {storage: {backend: local, "+
			"bucket: %s}}}\n", at.Bucket)}})
	if len(catalogs.Profiles()) != 1 {
		t.Fatalf("refused: %v", catalogs.Refused())
	}
	s := newService(t, func(c *Config, d *Deps) {
		d.Places, c.OrphanAfter = p, time.Hour
		d.Catalogs = func() (*registry.Catalogs, error) { return catalogs, nil }
	})
	s.asOfNow()
	return &elsewhere{service: s, at: at, blobs: p.Of(at)}
}

// put commits a blob.
func (e *elsewhere) put(key, content string) {
	e.t.Helper()
	w, err := e.blobs.Create(e.t.Context(), key)
	if err == nil {
		_, err = io.WriteString(w, content)
	}
	if err == nil {
		err = w.Commit(e.t.Context())
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// file stores a result of a batch as a dispatcher does.
func (e *elsewhere) file(batch, content string, life time.Duration) store.File {
	e.t.Helper()
	e.names++
	f := store.File{ID: fmt.Sprintf("file-elsewhere%03d", e.names), Tenant: DefaultTenant,
		Purpose: "batch_output", Filename: "out.jsonl", Bytes: int64(len(content)),
		CreatedAt: e.clock.now(), Storage: &e.at}
	if life > 0 {
		f.ExpiresAt = f.CreatedAt.Add(life)
	}
	f.BlobKey = store.ResultKey(batch, f.ID, 1)
	e.put(f.BlobKey, content)
	if err := e.meta.CreateFile(e.t.Context(), f); err != nil {
		e.t.Fatal(err)
	}
	return f
}

// gone moves the directory away until back is called.
func (e *elsewhere) gone() (back func()) {
	e.t.Helper()
	rename := func(from, to string) {
		e.t.Helper()
		if err := os.Rename(from, to); err != nil {
			e.t.Fatal(err)
		}
	}
	away := e.at.Bucket + ".away"
	rename(e.at.Bucket, away)
	e.eventually("the storage is known to be away", func() bool { // which package disk looks up
		_, err := e.blobs.List(e.t.Context(), store.ResultPrefix, "", 0) // ten times a second
		return err != nil
	})
	return func() {
		e.t.Helper()
		rename(away, e.at.Bucket)
		e.eventually("the storage is back", func() bool {
			_, err := e.blobs.List(e.t.Context(), store.ResultPrefix, "", 0)
			return err == nil
		})
	}
}

// keys lists the blobs of the storage.
func (e *elsewhere) keys() (keys []string) {
	e.t.Helper()
	page, err := e.blobs.List(e.t.Context(), store.ResultPrefix, "", 0)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, b := range page {
		keys = append(keys, b.Key)
	}
	return keys
}

func TestContentIsReadWhereItIs(t *testing.T) {
	e := newElsewhere(t)
	f := e.file("batch_1", "result\n", 0)
	path := "/v1/files/" + f.ID + "/content"
	e.get(path).isWhole("result\n")
	if a := e.get(path, "Range", "bytes=2-3"); a.status != 206 || a.body != "su" {
		t.Errorf("got %d %q for a range", a.status, a.body)
	}
	back := e.gone()
	a := e.get(path)
	a.refused(503, "", "storage_away", "its directory can't be used", "send the request again")
	if a.header.Get("Retry-After") == "" || strings.Contains(a.body, e.at.Bucket) {
		t.Errorf("got Retry-After %q and %s", a.header.Get("Retry-After"), a.body)
	}
	if !strings.Contains(e.logs.String(), e.at.Bucket) {
		t.Errorf("the log lacks the directory: %s", e.logs)
	}
	e.get("/v1/files/" + f.ID).ok() // the record needs no storage
	back()
	e.get(path).isWhole("result\n")
	e.do("DELETE", "/v1/files/"+f.ID, nil).ok()
	if keys := e.keys(); len(keys) > 0 {
		t.Errorf("the deleted file has left %q", keys)
	}
}

func TestContentWithoutPlacesIsA503(t *testing.T) {
	s := newService(t)
	err := s.meta.CreateFile(t.Context(), store.File{ID: "file-1", Tenant: DefaultTenant,
		BlobKey: "results/b/file-1.1", Storage: &store.Storage{Backend: "s3", Bucket: "results"}})
	if err != nil {
		t.Fatal(err)
	}
	s.get("/v1/files/file-1/content").refused(503, "", "storage_away", "opens no storages")
}

// A retry reads the error file where it is.
func TestRetryReadsErrorsWhereTheyAre(t *testing.T) {
	e := newElsewhere(t)
	id := e.create(line("a"))["id"].(string)
	f := e.file(id, string(batchfile.AppendResult(nil, batchfile.Result{ID: "batch_req_1",
		CustomID: []byte(`"a"`), ErrorCode: "batch_expired", ErrorMessage: "x"})), 0)
	e.change(id, func(b *store.Batch) {
		b.State, b.CompletedAt, b.Counts.Failed = store.Completed, e.clock.now(), 1
		b.Outputs[0].ErrorID, b.Outputs[0].HasErrors = f.ID, true
	})
	back := e.gone()
	e.post("/v1/batches/"+id+"/retry", "").refused(503, "", "storage_away")
	back()
	e.post("/v1/batches/"+id+"/retry", "").ok()
}

// Deletion needs no storage. The search for orphans removes the bytes later, and nothing that is in
// use or of another installation.
func TestDeletionWhileTheStorageIsAway(t *testing.T) {
	e := newElsewhere(t)
	input := e.upload(line("a"))
	ended, running := e.reading(input, store.Completed), e.reading(input, store.Finalizing)
	deleted, kept := e.file(ended.ID, "x", 0), e.file(ended.ID, "y", 0)
	want := []string{kept.BlobKey, store.ResultKey(running.ID, "file-x", 1),
		store.ResultKey("batch_of_others", "file-y", 1)}
	for _, key := range want[1:] {
		e.put(key, "z")
	}
	slices.Sort(want)
	back := e.gone()
	e.do("DELETE", "/v1/files/"+deleted.ID, nil).ok()
	e.get("/v1/files/"+deleted.ID).refused(404, "id", "")
	if log := e.logs.String(); !strings.Contains(log, deleted.BlobKey) ||
		!strings.Contains(log, "not removed") {
		t.Errorf("the log lacks the bytes that are left: %s", log)
	}
	e.clock.advance(2 * time.Hour)
	if err := e.server.sweepOrphans(t.Context()); err == nil {
		t.Error("a sweep of a storage that is away reports nothing")
	}
	back()
	e.sweepOrphans()
	if got := e.keys(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Expired files of a storage that is away keep their records, and other files expire meanwhile.
func TestSweepGoesOnWhileAStorageIsAway(t *testing.T) {
	e := newElsewhere(t)
	const n = sweepPage + 5
	for range n {
		e.file("batch_1", "x", time.Hour)
	}
	e.clock.advance(time.Second) // those of the storage expire first
	e.upload(line("a"))
	back := e.gone()
	e.clock.advance(31 * 24 * time.Hour)
	if err := e.server.sweep(t.Context()); err == nil {
		t.Error("a sweep that left files reports nothing")
	}
	if got := e.stored(); len(got) > 0 {
		t.Errorf("the daemon's own store still has %q", got)
	}
	left := func() int {
		files, err := e.meta.ExpiredFiles(context.Background(), 10*n)
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	if got := left(); got != n {
		t.Errorf("%d records are left, want %d", got, n)
	}
	back()
	e.sweep()
	if got := left(); got != 0 || len(e.keys()) > 0 {
		t.Errorf("%d records and %q are left", got, e.keys())
	}
}
