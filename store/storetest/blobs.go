package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// TestBlobs runs the suite for [store.Blobs]. open returns a new, empty backend and closes it when
// the test ends.
func TestBlobs(t *testing.T, open func(t *testing.T) store.Blobs) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, b store.Blobs)
	}{
		{"blobs appear when committed", blobsCommit},
		{"blobs are not committed in an ended context", blobsEndedContext},
		{"blobs are replaced in one step", blobsReplace},
		{"open blobs never mix with those that replace them", blobsReplaceLarge},
		{"blobs are deleted by key and prefix", blobsDelete},
		{"blobs have harmless keys", blobsKeys},
		{"blobs are listed page by page", blobsList},
		{"listings of blobs have the times of their commits", blobsCommittedAt},
		{"blobs are written and deleted side by side", blobsRace},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, open(t))
		})
	}
}

func putBlob(t testing.TB, b store.Blobs, key, content string) {
	t.Helper()
	w := got(b.Create(t.Context(), key))(t)
	defer w.Abort()
	got(io.WriteString(w, content))(t)
	must(t, w.Commit(t.Context()))
}

func readBlob(t testing.TB, b store.Blobs, key string) (string, error) {
	t.Helper()
	o, err := b.Open(t.Context(), key)
	if err != nil {
		return "", err
	}
	defer o.Close()
	return string(got(io.ReadAll(io.NewSectionReader(o, 0, o.Size())))(t)), nil
}

func wantBlob(t testing.TB, b store.Blobs, key, want string) {
	t.Helper()
	if content, err := readBlob(t, b, key); err != nil || content != want {
		t.Errorf("blob %s: got %.60q, %v, want %.60q", key, content, err, want)
	}
}

func wantNoBlob(t testing.TB, b store.Blobs, key string) {
	t.Helper()
	_, err := readBlob(t, b, key)
	wantErr(t, "open "+key, err, store.ErrNotFound)
}

func blobsCommit(t *testing.T, b store.Blobs) {
	ctx := t.Context()
	wantNoBlob(t, b, "a/b")
	w := got(b.Create(ctx, "a/b"))(t)
	want := bytes.Repeat([]byte("0123456789"), 50_000)
	for i := 0; i < len(want); i += 70_001 {
		got(w.Write(want[i:min(i+70_001, len(want))]))(t)
	}
	wantNoBlob(t, b, "a/b")
	must(t, w.Commit(t.Context()))
	must(t, w.Abort()) // does nothing any more
	wantBlob(t, b, "a/b", string(want))

	o := got(b.Open(ctx, "a/b"))(t)
	defer o.Close()
	part := make([]byte, 7)
	got(o.ReadAt(part, 123_455))(t)
	wantEqual(t, "bytes from the middle", string(part), "5678901")
	if _, err := o.ReadAt(part, o.Size()-3); !errors.Is(err, io.EOF) {
		t.Errorf("read across the end: got %v, want %v", err, io.EOF)
	}

	dropped := got(b.Create(ctx, "a/dropped"))(t)
	got(io.WriteString(dropped, "x"))(t)
	must(t, dropped.Abort())
	wantNoBlob(t, b, "a/dropped")
	putBlob(t, b, "a/empty", "")
	wantBlob(t, b, "a/empty", "")
}

func blobsEndedContext(t *testing.T, b store.Blobs) {
	ctx, cancel := context.WithCancel(t.Context())
	w := got(b.Create(ctx, "k"))(t)
	cancel()
	wantErr(t, "commit", w.Commit(ctx), context.Canceled)
	must(t, w.Abort())
	wantNoBlob(t, b, "k")
	_, err := b.Create(ctx, "k")
	wantErr(t, "create", err, context.Canceled)
	_, err = b.Open(ctx, "k")
	wantErr(t, "open", err, context.Canceled)
}

func blobsReplace(t *testing.T, b store.Blobs) {
	putBlob(t, b, "k", "first")
	o := got(b.Open(t.Context(), "k"))(t)
	defer o.Close()
	putBlob(t, b, "k", "second one")
	wantBlob(t, b, "k", "second one")
	wantEqual(t, "the blob that was open",
		string(got(io.ReadAll(io.NewSectionReader(o, 0, o.Size())))(t)), "first")
}

func blobsReplaceLarge(t *testing.T, b store.Blobs) {
	const size = 3 << 20
	old := strings.Repeat("a", size)
	for _, change := range []func() error{
		func() error { putBlob(t, b, "k", strings.Repeat("b", size)); return nil },
		func() error { return b.Delete(t.Context(), "k") },
	} {
		putBlob(t, b, "k", old)
		o := got(b.Open(t.Context(), "k"))(t)
		part := make([]byte, 1000)
		got(o.ReadAt(part, 0))(t)
		must(t, change())
		for off := int64(0); off < size; off += 70_001 {
			_, err := o.ReadAt(part[:min(1000, size-off)], off)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				t.Errorf("read at %d: %v", off, err)
			}
			if err == nil && strings.Trim(string(part), "a") != "" {
				t.Fatalf("read bytes of another blob at %d", off)
			}
		}
		must(t, o.Close())
	}
}

func blobsDelete(t *testing.T, b store.Blobs) {
	ctx := t.Context()
	for _, key := range []string{"p/1", "p/2/3", "p/2/4", "pp/1", "q"} {
		putBlob(t, b, key, key)
	}
	o := got(b.Open(ctx, "p/1"))(t)
	defer o.Close()
	must(t, b.Delete(ctx, "p/1"))
	must(t, b.Delete(ctx, "p/1"))
	must(t, b.Delete(ctx, "nothing/at/all"))
	wantNoBlob(t, b, "p/1")
	wantEqual(t, "the blob that was open",
		string(got(io.ReadAll(io.NewSectionReader(o, 0, o.Size())))(t)), "p/1")

	must(t, b.DeletePrefix(ctx, "p"))
	must(t, b.DeletePrefix(ctx, "p"))
	must(t, b.DeletePrefix(ctx, "q"))
	wantNoBlob(t, b, "p/2/3")
	wantNoBlob(t, b, "p/2/4")
	wantBlob(t, b, "pp/1", "pp/1")
	wantBlob(t, b, "q", "q")
}

func blobsKeys(t *testing.T, b store.Blobs) {
	ctx := t.Context()
	for _, key := range []string{"", "/a", "a/", "a//b", ".", "..", "a/../../b", "a/./b", "a b",
		"a\\b", "a\x00b", "ä", "a:b"} {
		if _, err := b.Create(ctx, key); err == nil {
			t.Errorf("created a blob under key %q", key)
		}
		if _, err := b.Open(ctx, key); err == nil {
			t.Errorf("opened a blob under key %q", key)
		}
		if err := b.DeletePrefix(ctx, key); err == nil {
			t.Errorf("deleted blobs below %q", key)
		}
		if _, err := b.List(ctx, key, "", 0); err == nil {
			t.Errorf("listed blobs below %q", key)
		}
	}
	putBlob(t, b, "File-1_a.b/..c", "x")
	wantBlob(t, b, "File-1_a.b/..c", "x")
}

func blobsList(t *testing.T, b store.Blobs) {
	ctx := t.Context()
	// '-' and '.' sort before the slash and digits after it, so that directories and their
	// neighbours interleave.
	want := []string{"p/a-b", "p/a.index", "p/a/b-c", "p/a/b/c", "p/a/b/d", "p/a0", "p/b"}
	for i, key := range want {
		putBlob(t, b, key, strings.Repeat("x", i))
	}
	for _, key := range []string{"pp/1", "o/1", "q"} {
		putBlob(t, b, key, key)
	}
	half := got(b.Create(ctx, "p/half"))(t)
	defer half.Abort()
	for limit := range len(want) + 2 {
		var listed []string
		for after := ""; ; {
			page := got(b.List(ctx, "p", after, limit))(t)
			for _, info := range page {
				wantEqual(t, "size of "+info.Key, info.Bytes, int64(len(listed)))
				listed = append(listed, info.Key)
			}
			if limit > 0 && len(page) > limit || len(listed) > len(want) {
				t.Fatalf("got a page of %d under a limit of %d; %d blobs so far", len(page), limit,
					len(listed))
			}
			if limit == 0 || len(page) < limit {
				break
			}
			after = page[limit-1].Key
		}
		wantEqual(t, fmt.Sprintf("keys in pages of %d", limit), listed, want)
	}
	for after, first := range map[string]string{"o": "p/a-b", "p/a/": "p/a/b-c", "p/a/a": "p/a/b-c",
		"p/a/b": "p/a/b-c", "p/a/b/": "p/a/b/c", "p/a/z": "p/a0"} {
		page := got(b.List(ctx, "p", after, 1))(t)
		if len(page) != 1 || page[0].Key != first {
			t.Errorf("after %s: got %v, want %s", after, page, first)
		}
	}
	for _, prefix := range []string{"nothing/at/all", "q", "p/b"} {
		if page := got(b.List(ctx, prefix, "", 0))(t); len(page) > 0 {
			t.Errorf("got %v below %s", page, prefix)
		}
	}
	if page := got(b.List(ctx, "p", "p/b", 0))(t); len(page) > 0 {
		t.Errorf("got %v after the last", page)
	}
}

func blobsCommittedAt(t *testing.T, b store.Blobs) {
	// The resolutions of the times of file systems and of object storages. The second one is tried
	// if the times are whole seconds.
	for _, grain := range []time.Duration{10 * time.Millisecond, time.Second} {
		w := got(b.Create(t.Context(), "d/a"))(t)
		got(w.Write(make([]byte, 1<<20)))(t)
		<-time.After(3 * grain) // between the last write and the commit
		before := time.Now().Add(-grain)
		must(t, w.Commit(t.Context()))
		after := time.Now().Add(grain)
		at := got(b.List(t.Context(), "d", "", 0))(t)[0].CommittedAt
		if !at.Before(before) && !at.After(after) {
			return
		}
		if at.Nanosecond() != 0 || grain == time.Second {
			t.Fatalf("got %v, want a time between %v and %v", at, before, after)
		}
	}
}

func blobsRace(t *testing.T, b store.Blobs) {
	var running sync.WaitGroup
	for i := range 4 {
		running.Go(func() {
			for n := range 25 {
				key := fmt.Sprintf("d/%d/%d", i, n)
				w, err := b.Create(t.Context(), key)
				if err == nil {
					_, err = io.WriteString(w, key)
				}
				if err == nil {
					err = w.Commit(t.Context())
				}
				if err == nil && n%2 == 0 {
					err = b.Delete(t.Context(), key)
				}
				if err != nil {
					t.Errorf("%s: %v", key, err)
				}
			}
		})
	}
	running.Wait()
	for i := range 4 {
		wantNoBlob(t, b, fmt.Sprintf("d/%d/24", i))
		wantBlob(t, b, fmt.Sprintf("d/%d/23", i), fmt.Sprintf("d/%d/23", i))
	}
}
