package dispatch_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

// alter changes the bytes of a blob, as a failing medium would.
func (w *world) alter(key string, change func([]byte) []byte) {
	w.t.Helper()
	ctx := w.t.Context()
	blob, err := w.disk.Blobs().Open(ctx, key)
	if err != nil {
		w.t.Fatal(err)
	}
	content, err := io.ReadAll(io.NewSectionReader(blob, 0, blob.Size()))
	if err != nil {
		w.t.Fatal(err)
	}
	blob.Close()
	altered, err := w.disk.Blobs().Create(ctx, key)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := altered.Write(change(content)); err != nil {
		w.t.Fatal(err)
	}
	if err := altered.Commit(ctx); err != nil {
		w.t.Fatal(err)
	}
}

func TestDamagedLinesFail(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	lines := []string{chatLine("a", "m"), chatLine("b", "m"), strings.Replace(chatLine("long", "m"),
		"say long", long, 1), chatLine("c", "m")}
	for name, test := range map[string]struct {
		change func([]byte) []byte
		sent   string // what must not be
		failed string // the custom_id in the error file
	}{
		"a body": {func(b []byte) []byte {
			return bytes.Replace(b, []byte("say b"), []byte("say d"), 1)
		}, "say d", "b"},
		"a long body": {func(b []byte) []byte {
			return bytes.Replace(b, []byte("xxx"), []byte("xyx"), 1)
		}, "xyx", "long"},
		"a custom_id": {func(b []byte) []byte {
			return bytes.Replace(b, []byte(`:"b"`), []byte(`:"d"`), 1)
		}, "say b", "damaged custom_id of line 2"},
		"the file cut": {func(b []byte) []byte { return b[:len(b)-10] }, "say c", "c"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			up := serve(t, nil, "m")
			id := w.submit(lines, nil)
			w.alter(w.batch(id).Inputs[0].BlobKey, test.change)
			w.dispatcher("a", nil, up.URL)
			if b := w.awaitEnd(id); b.State != store.Completed {
				t.Fatalf("got %s, want completed", b.State)
			}
			output, errs := w.results(id)
			if len(output) != 3 || len(errs) != 1 {
				t.Fatalf("got %d results and %d errors of 4 lines, want 3 and 1", len(output), len(
					errs))
			}
			e := errs[0]
			if e.CustomID != test.failed || e.Error == nil || e.Error.Code != "input_damaged" ||
				!strings.Contains(e.Error.Message, "line ") {
				t.Errorf("got %s with %+v, want %s with input_damaged and the line", e.CustomID,
					e.Error, test.failed)
			}
			for body := range up.bodies {
				if strings.Contains(body, test.sent) {
					t.Errorf("a damaged line was sent: %.200s", body)
				}
			}
		})
	}
}

func TestDamagedIndexIsRebuilt(t *testing.T) {
	w := newWorld(t)
	up := serve(t, nil, "m")
	id := w.submit([]string{chatLine("a", "m"), chatLine("b", "m")}, nil)
	key := w.batch(id).Inputs[0].IndexKey
	w.alter(key, func(b []byte) []byte { b[20] ^= 1; return b })
	w.dispatcher("a", nil, up.URL)
	w.awaitEnd(id)
	if output, _ := w.results(id); len(output) != 2 {
		t.Errorf("got %d results, want 2", len(output))
	}
}

func TestBatchOfLostLinesFails(t *testing.T) {
	w := newWorld(t)
	up := serve(t, nil, "m")
	id := w.submit([]string{chatLine("a", "m"), chatLine("b", "m")}, nil)
	input := w.batch(id).Inputs[0]
	w.alter(input.IndexKey, func(b []byte) []byte { return b[:len(b)-1] })
	w.alter(input.BlobKey, func(b []byte) []byte { return b[:len(b)/2] })
	w.dispatcher("a", nil, up.URL)
	if b := w.awaitEnd(id); b.State != store.Failed || len(b.Errors) != 1 ||
		b.Errors[0].Code != "input_damaged" {
		t.Errorf("got %s with %v, want failed with input_damaged", b.State, b.Errors)
	}
}

// failingBlobs fails a number of reads of custom_ids of one length.
type failingBlobs struct {
	dispatch.Blobs
	length int
	fails  *atomic.Int32
}

type failingBlob struct {
	store.Blob
	of *failingBlobs
}

func (d *failingBlobs) Open(ctx context.Context, key string) (store.Blob, error) {
	b, err := d.Blobs.Open(ctx, key)
	return failingBlob{b, d}, err
}

func (b failingBlob) ReadAt(p []byte, at int64) (int, error) {
	if len(p) == b.of.length && b.of.fails.Add(-1) >= 0 {
		return 0, syscall.EIO
	}
	return b.Blob.ReadAt(p, at)
}

// A line that failed is sent again, rather than forgotten, if its custom_id can't be read for the
// result.
func TestFailedLinesWithUnreadableIDAreSentAgain(t *testing.T) {
	name := strings.Repeat("n", 39)
	line := strings.Replace(chatLine(name, "m"), "say "+name, strings.Repeat("x", 300<<10), 1)
	up := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
	}, "m")
	w := newWorld(t)
	var fails atomic.Int32
	fails.Store(2)
	w.dispatcher("a", func(_ *dispatch.Config, deps *dispatch.Deps) {
		deps.Blobs = &failingBlobs{Blobs: deps.Blobs, length: len(name) + 2, fails: &fails}
	}, up.URL)
	id := w.submit([]string{line, chatLine("b", "m")}, nil)
	if b := w.awaitEnd(id); b.State != store.Completed || b.Counts.Failed != 2 ||
		fails.Load() >= 0 {
		t.Errorf("got %s, %+v, and %d reads that were to fail and did not", b.State, b.Counts,
			fails.Load())
	}
	if _, errs := w.results(id); errs[0].CustomID != name {
		t.Errorf("got the result of %q", errs[0].CustomID)
	}
}
