package copying_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	tests3 "github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/cluster"
	"github.com/tidefill/tidefill/store/copying"
	"github.com/tidefill/tidefill/store/embedded"
)

func TestMain(m *testing.M) { testpostgres.Main(m) }

// place opens a store again and again.
type place struct {
	name    string
	options store.OpenOptions
}

func newEmbedded(t *testing.T) place {
	backend, err := store.FindBackend(embedded.Name)
	if err != nil {
		t.Fatal(err)
	}
	return place{embedded.Name, store.OpenOptions{Config: backend.Default, Directory: t.TempDir(),
		Node: "copy", Expiry: time.Now, Moving: true}}
}

// newCluster has its files and results in a bucket.
func newCluster(t *testing.T) (place, *tests3.Server) {
	const passwordVariable = "TIDEFILL_TEST_PASSWORD"
	t.Setenv(passwordVariable, testpostgres.Password)
	server, objects := testpostgres.Shared(t), tests3.Start(t)
	cfg := cluster.DefaultConfig()
	cfg.Metadata.URL = fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable",
		testpostgres.User, server.Port, server.NewDatabase(t))
	cfg.Metadata.PasswordEnv = passwordVariable
	cfg.Objects.Endpoint, cfg.Objects.Bucket = objects.URL, tests3.Bucket
	cfg.Objects.PathStyle = true
	cfg.Objects.AccessKeyFile, cfg.Objects.SecretKeyFile = tests3.Secrets(t)
	return place{cluster.Name, store.OpenOptions{Config: cfg, Directory: t.TempDir(),
		Node: "copy", Expiry: time.Now, Moving: true}}, objects
}

// open opens the store until the end of f.
func (p place) open(t *testing.T, f func(*store.Backend)) {
	t.Helper()
	backend, err := store.FindBackend(p.name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := backend.Open(t.Context(), p.options)
	if err != nil {
		t.Fatal(err)
	}
	f(b)
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func side(name string, b *store.Backend) copying.Side {
	return copying.Side{Name: name, Place: "the place of " + name, Backend: b}
}

// copy copies from one store to another.
func copyStores(
	t *testing.T, from, to place, edit func(from, to *store.Backend),
) (sum copying.Summary, err error) {
	t.Helper()
	from.open(t, func(source *store.Backend) {
		to.open(t, func(target *store.Backend) {
			if edit != nil {
				edit(source, target)
			}
			sum, err = copying.Copy(t.Context(), side("A", source), side("B", target),
				copying.Options{})
		})
	})
	return sum, err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error with %q", err, want)
	}
}

const files = 20

func content(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 10_000*i) }

func writeBlob(t *testing.T, b *store.Backend, key string, content []byte) {
	t.Helper()
	w, err := b.Blobs.Create(t.Context(), key)
	must(t, err)
	_, err = w.Write(content)
	must(t, err)
	must(t, w.Commit(t.Context()))
}

func readBlob(t *testing.T, b *store.Backend, key string) []byte {
	t.Helper()
	blob, err := b.Blobs.Open(t.Context(), key)
	must(t, err)
	defer blob.Close()
	content, err := io.ReadAll(io.NewSectionReader(blob, 0, blob.Size()))
	must(t, err)
	return content
}

// fill makes files, a running batch with results, of which one is large, and notices.
func fill(t *testing.T, b *store.Backend) {
	t.Helper()
	ctx, now := t.Context(), time.Now().UTC()
	for i := range files {
		key := fmt.Sprint("files/", i)
		writeBlob(t, b, key, content(i))
		must(t, b.Records.CreateFile(ctx, store.File{ID: fmt.Sprint(i), Tenant: "t",
			Purpose: "batch", Bytes: int64(len(content(i))), BlobKey: key, CreatedAt: now}))
	}
	must(t, b.Records.CreateFile(ctx, store.File{ID: "expired", Tenant: "t", BlobKey: "files/gone",
		CreatedAt: now, ExpiresAt: now.Add(-time.Hour)}))
	running := store.Batch{ID: "b", Tenant: "t", State: store.InProgress, CreatedAt: now,
		Inputs: []store.Input{{FileID: "1", BlobKey: "files/1", Lines: 10}}}
	must(t, b.Records.CreateBatch(ctx, running))
	writeBlob(t, b, "batches/b/order", []byte("order"))
	_, at, err := b.Records.ChangedBatches(ctx, "", 1)
	must(t, err)
	must(t, b.Records.AddNotices(ctx, "hook", "", at, nil))
	ended := running
	ended.ID, ended.State, ended.FailedAt, ended.Inputs = "ended", store.Failed, now, nil
	must(t, b.Records.CreateBatch(ctx, ended)) // the endpoint has not seen it

	o, err := b.Records.Register(ctx, "n", time.Hour)
	must(t, err)
	must(t, b.Records.AddChunks(ctx, "b", []store.Chunk{
		{ChunkID: store.ChunkID{Batch: "b", Index: 0}, Model: "m", Count: 5},
		{ChunkID: store.ChunkID{Batch: "b", Index: 1}, Model: "m", First: 5, Count: 5},
		{ChunkID: store.ChunkID{Batch: "b", Index: 2}, Model: "m", First: 10, Count: 5}}))
	chunks, err := b.Records.ClaimChunks(ctx, o, "b", "m", 2, nil)
	must(t, err)
	for _, c := range chunks {
		appendResults(t, b, c, 5)
	}
	must(t, b.Records.Unregister(ctx, o))
}

const largeResult = 300 << 10

func appendResults(t *testing.T, b *store.Backend, c store.Chunk, n int) {
	t.Helper()
	ctx := t.Context()
	j, err := b.Journals.Open(ctx, c.ChunkID, c.Epoch, func(store.Record) {}, func(store.Commit) {})
	must(t, err)
	for i := range n {
		r := store.Record{Line: uint32(c.First + i), Attempts: 1, Failed: i == 1}
		if i == 3 {
			if c.Index == 1 {
				must(t, j.Flush(ctx)) // else it passes those before it, which are pending
			}
			must(t, j.AppendFrom(ctx, r, largeResult, func() io.Reader {
				return bytes.NewReader(bytes.Repeat([]byte("x"), largeResult))
			}))
			continue
		}
		r.Result = fmt.Appendf(nil, "result %d\n", i)
		must(t, j.Append(ctx, r))
	}
	must(t, j.Close(ctx))
}

// check compares a store with what fill made.
func check(t *testing.T, b *store.Backend) {
	t.Helper()
	ctx := t.Context()
	for i := range files {
		if !bytes.Equal(readBlob(t, b, fmt.Sprint("files/", i)), content(i)) {
			t.Errorf("file %d has other bytes", i)
		}
	}
	if got := readBlob(t, b, "batches/b/order"); string(got) != "order" {
		t.Errorf("the order is %q", got)
	}
	at, err := b.Records.NoticeCursor(ctx, "hook")
	must(t, err)
	changed, _, err := b.Records.ChangedBatches(ctx, at, 10)
	must(t, err)
	if len(changed) == 0 || !strings.Contains(fmt.Sprint(changed), "ended") {
		t.Errorf("the endpoint sees the changes %v, want that of batch ended", changed)
	}
	o, err := b.Records.Register(ctx, "n2", time.Hour)
	must(t, err)
	chunks, err := b.Records.ClaimChunks(ctx, o, "b", "m", 10, nil)
	must(t, err)
	if len(chunks) != 3 {
		t.Fatalf("claimed %d chunks, want 3", len(chunks))
	}
	lines := 0
	for _, c := range chunks {
		j, err := b.Journals.Open(ctx, c.ChunkID, c.Epoch, func(r store.Record) {
			lines++
		}, func(store.Commit) {})
		must(t, err)
		must(t, j.Close(ctx))
	}
	if lines != 10 {
		t.Errorf("%d results are there, want 10", lines)
	}
	must(t, b.Records.Unregister(ctx, o))
}

func TestCopyToACluster(t *testing.T) {
	from := newEmbedded(t)
	to, _ := newCluster(t)
	from.open(t, func(b *store.Backend) { fill(t, b) })
	sum, err := copyStores(t, from, to, nil)
	must(t, err)
	if sum.Blobs.Written != files+1 || sum.Journals.Written != 10 {
		t.Errorf("copied %+v", sum)
	}
	to.open(t, func(b *store.Backend) { check(t, b) })

	// Back into the same directory: only what has changed is written.
	to.open(t, func(b *store.Backend) {
		_, err := b.Records.DeleteFile(t.Context(), "t", "7")
		must(t, err)
		writeBlob(t, b, "files/new", []byte("new"))
		must(t, b.Records.CreateFile(t.Context(), store.File{ID: "new", Tenant: "t", Bytes: 3,
			BlobKey: "files/new"}))
	})
	sum, err = copyStores(t, to, from, nil)
	must(t, err)
	if n := sum.Rows[store.FileRows]; n.Written != 1 || n.Removed != 1 || sum.Blobs.Written != 1 {
		t.Errorf("copied %+v, want one file written and one removed", sum)
	}
	from.open(t, func(b *store.Backend) {
		if got := readBlob(t, b, "files/new"); string(got) != "new" {
			t.Errorf("the new file has %q", got)
		}
	})
}

// cutBlobs fails after so many blobs were created.
type cutBlobs struct {
	store.Blobs
	left atomic.Int64
}

var errCut = errors.New("the connection was cut")

func (c *cutBlobs) Create(ctx context.Context, key string) (store.BlobWriter, error) {
	if c.left.Add(-1) < 0 {
		return nil, errCut
	}
	return c.Blobs.Create(ctx, key)
}

// cutJournals fails when results are appended.
type cutJournals struct{ store.Journals }

func (cutJournals) Open(context.Context, store.ChunkID, int64, func(store.Record),
	func(store.Commit)) (store.Journal, error) {
	return nil, errCut
}

func TestACutCopyIsContinued(t *testing.T) {
	from := newEmbedded(t)
	to, objects := newCluster(t)
	from.open(t, func(b *store.Backend) { fill(t, b) })
	sum, err := copyStores(t, from, to, func(_, target *store.Backend) {
		cut := &cutBlobs{Blobs: target.Blobs}
		cut.left.Store(5)
		target.Blobs = cut
	})
	if !errors.Is(err, errCut) {
		t.Fatalf("got %v and %+v, want the cut", err, sum)
	}
	started := to
	started.options.Moving = false
	backend, _ := store.FindBackend(to.name)
	_, err = backend.Open(t.Context(), started.options)
	wantError(t, err, "is not complete; run the same `tidefill store copy` again")

	sum, err = copyStores(t, from, to, func(_, target *store.Backend) {
		target.Journals = cutJournals{target.Journals}
	})
	if !errors.Is(err, errCut) || sum.Blobs.Total != files+1 ||
		sum.Rows[store.FileRows].Written != 0 {
		t.Fatalf("got %v and %+v, want the cut after all blobs, and no file again", err, sum)
	}
	flip(t, filepath.Join(objects.Directory, tests3.Bucket), "files/9")
	sum, err = copyStores(t, from, to, nil)
	must(t, err)
	if sum.Replaced != 1 || sum.Blobs.Written != 1 || sum.Journals.Written != 10 {
		t.Errorf("got %+v, want the one blob that was flipped replaced", sum)
	}
	to.open(t, func(b *store.Backend) { check(t, b) })
	started.open(t, func(*store.Backend) {})
}

// flip changes a byte of the file below root whose path ends so.
func flip(t *testing.T, root, suffix string) {
	t.Helper()
	flipped := 0
	must(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, suffix) {
			return err
		}
		flipped++
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		b := []byte{0}
		if _, err := f.ReadAt(b, info.Size()/2); err != nil {
			return err
		}
		b[0] ^= 1
		_, err = f.WriteAt(b, info.Size()/2)
		return err
	}))
	if flipped != 1 {
		t.Fatalf("flipped a byte in %d files, want 1", flipped)
	}
}

// flippingBlobs flips a byte of what is written.
type flippingBlobs struct{ store.Blobs }

type flippingWriter struct{ store.BlobWriter }

func (f flippingBlobs) Create(ctx context.Context, key string) (store.BlobWriter, error) {
	w, err := f.Blobs.Create(ctx, key)
	return flippingWriter{w}, err
}

func (w flippingWriter) Write(p []byte) (int, error) {
	q := bytes.Clone(p)
	if len(q) > 0 {
		q[len(q)/2] ^= 1
	}
	return w.BlobWriter.Write(q)
}

func TestAFlippedByteIsFound(t *testing.T) {
	from, to := newEmbedded(t), newEmbedded(t)
	from.open(t, func(b *store.Backend) { fill(t, b) })
	_, err := copyStores(t, from, to, func(_, target *store.Backend) {
		target.Blobs = flippingBlobs{target.Blobs}
	})
	wantError(t, err, "has the SHA-256")
	flip(t, from.options.Directory, "journals/b/0.journal")
	sum, err := copyStores(t, from, to, nil)
	must(t, err)
	if sum.DamagedBytes == 0 {
		t.Errorf("the damage of the source's journal was not found: %+v", sum)
	}
}

func TestMissingBytes(t *testing.T) {
	from, to := newEmbedded(t), newEmbedded(t)
	from.open(t, func(b *store.Backend) {
		fill(t, b)
		must(t, b.Blobs.Delete(t.Context(), "files/3"))
	})
	_, err := copyStores(t, from, to, nil)
	wantError(t, err, "the bytes of 1 blobs are missing, such as files/3")
	from.open(t, func(source *store.Backend) {
		to.open(t, func(target *store.Backend) {
			_, err = copying.Copy(t.Context(), side("A", source), side("B", target),
				copying.Options{AllowMissing: true})
		})
	})
	must(t, err)
}

func TestRefusals(t *testing.T) {
	from, to, other := newEmbedded(t), newEmbedded(t), newEmbedded(t)
	for _, p := range []place{from, other} {
		p.open(t, func(b *store.Backend) { fill(t, b) })
	}
	_, err := copyStores(t, from, other, nil)
	wantError(t, err, "B is in use: it has batches of another installation")
	_, err = copyStores(t, from, to, func(source, _ *store.Backend) {
		_, err := source.Records.Register(t.Context(), "alive", time.Hour)
		must(t, err)
	})
	wantError(t, err, "A: the lease of node alive lasts")
	from.open(t, func(b *store.Backend) {
		o, err := b.Records.Register(t.Context(), "alive", time.Hour)
		must(t, err)
		must(t, b.Records.Unregister(t.Context(), o))
	})
	running := from
	running.options.Node = "running"
	running.open(t, func(*store.Backend) {
		_, err = copyStores(t, from, to, nil)
	})
	wantError(t, err, "A: node running runs; stop all processes")
	_, err = copyStores(t, from, to, func(source, target *store.Backend) {
		target.Blobs = &usedBlobs{target.Blobs, source}
	})
	wantError(t, err, "a process used one of the stores meanwhile")

	_, err = copyStores(t, other, to, nil)
	wantError(t, err, "B has a part of another store")
	_, err = copyStores(t, to, newEmbedded(t), nil)
	wantError(t, err, "A has only a part of")
	_, err = copyStores(t, from, to, nil)
	must(t, err)
	sum, err := copyStores(t, from, to, nil)
	if must(t, err); !sum.Moved {
		t.Errorf("copied again: %+v", sum)
	}
	_, err = copyStores(t, from, newEmbedded(t), nil)
	wantError(t, err, "A was moved to the place of B")
	_, err = copyStores(t, other, from, nil)
	wantError(t, err, "B has the data of another installation")
}

// usedBlobs starts and stops a daemon while blobs are copied.
type usedBlobs struct {
	store.Blobs
	source *store.Backend
}

func (u *usedBlobs) Create(ctx context.Context, key string) (store.BlobWriter, error) {
	o, err := u.source.Records.Register(ctx, "n", time.Hour)
	if err == nil {
		err = u.source.Records.Unregister(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	return u.Blobs.Create(ctx, key)
}
