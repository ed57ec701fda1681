package s3_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	servers "github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/s3"
)

func TestWrongSettingsAreRefusedWithARemedy(t *testing.T) {
	url := servers.Start(t).URL
	wrong := filepath.Join(t.TempDir(), "wrong")
	if err := os.WriteFile(wrong, []byte("another-secret-of-mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*s3.Config)
		want   string
	}{
		"secret key":  {func(c *s3.Config) { c.SecretKeyFile = wrong }, "correct the credentials"},
		"access key":  {func(c *s3.Config) { c.AccessKeyFile = wrong }, "correct the credentials"},
		"bucket":      {func(c *s3.Config) { c.Bucket = "not-there" }, "create it"},
		"no key file": {func(c *s3.Config) { c.SecretKeyFile = wrong + "x" }, "secret_key_file"},
		"nobody listens": {func(c *s3.Config) {
			c.Endpoint, c.Tries = "http://127.0.0.1:1", 2
		}, "refused"},
		"prefix": {func(c *s3.Config) { c.Prefix = "/a" }, "prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t, url)
			test.change(&c)
			_, err := s3.Open(t.Context(), c, s3.Options{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want an error with %q", err, test.want)
			}
			for _, secret := range []string{"another-secret-of-mine", servers.SecretKey} {
				if name != "access key" && strings.Contains(err.Error(), secret) {
					t.Errorf("the error has a secret: %v", err)
				}
			}
		})
	}
}

func TestMissingCredentialsAreNamed(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(home, "none"))
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	c := config(t, servers.Start(t).URL)
	c.AccessKeyFile, c.SecretKeyFile = "", ""
	_, err := s3.Open(t.Context(), c, s3.Options{})
	if err == nil || !strings.Contains(err.Error(), "no credentials were found: set ") {
		t.Errorf("got %v, want what to set", err)
	}
}

// TestAWrongClockIsNamed has the storage refuse a request because of its time.
func TestAWrongClockIsNamed(t *testing.T) {
	p := servers.StartProxy(t, servers.Start(t))
	c := config(t, p.URL)
	p.Choose(func(r *http.Request) servers.Fault {
		r.Header.Set("X-Amz-Date", "20200101T000000Z")
		return servers.None
	})
	_, err := s3.Open(t.Context(), c, s3.Options{})
	if err == nil || !strings.Contains(err.Error(), "NTP") {
		t.Errorf("got %v, want the remedy", err)
	}
}

// A small object is written once if it must be new, also by many at the same time.
func TestOneOfManyWritesASmallObject(t *testing.T) {
	b := open(t, config(t, servers.Start(t).URL))
	var wrote atomic.Int32
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			err := b.WriteSmall(t.Context(), s3.MarkerName, fmt.Sprint(i), true)
			if err == nil {
				wrote.Add(1)
			} else if !errors.Is(err, store.ErrExists) {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if wrote.Load() != 1 {
		t.Errorf("%d have written it, want one", wrote.Load())
	}
}

// An object that is missing is ErrNotFound only if the marker is there, by which the prefix is
// recognized.
func TestMissingObjectsCountWithTheMarker(t *testing.T) {
	for name, start := range starts {
		t.Run(name, func(t *testing.T) { testMarker(t, start(t).URL) })
	}
}

func testMarker(t *testing.T, url string) {
	c := config(t, url)
	b, ctx := open(t, c), t.Context()
	write := func(content string) {
		t.Helper()
		if err := b.WriteSmall(ctx, s3.MarkerName, content, false); err != nil {
			t.Fatal(err)
		}
	}
	missing := func(what string, want error) {
		t.Helper()
		_, err := b.Blobs().Open(ctx, "files/f")
		if !errors.Is(err, want) {
			t.Errorf("%s: open a blob: got %v, want %v", what, err, want)
		}
		if err := b.ReadAt(ctx, "s", make([]byte, 1), 0); !errors.Is(err, want) {
			t.Errorf("%s: read a segment: got %v, want %v", what, err, want)
		}
	}
	missing("no marker is expected", store.ErrNotFound)
	write("one")
	b.Expect("one")
	missing("the marker is there", store.ErrNotFound)
	if err := b.Misplaced(ctx); err != nil {
		t.Errorf("the marker is there: %v", err)
	}

	write("two")
	missing("another marker", store.ErrUnavailable)
	if err := b.Misplaced(ctx); err == nil || !strings.Contains(err.Error(), c.Bucket) {
		t.Errorf("another marker: got %v, want the bucket", err)
	}
	if _, err := b.Blobs().Create(ctx, "files/g"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("create a blob with another marker: %v", err)
	}
	write("one")
	missing("the marker is back", store.ErrNotFound)
	w, err := b.Blobs().Create(ctx, "files/g")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
}

// TestLeftoversAreCollected has a process crash while it writes a blob in parts.
func TestLeftoversAreCollected(t *testing.T) {
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			c := config(t, start(t).URL)
			c.PartBytes = 5 << 20
			b := open(t, c)
			if _, err := must(b.Blobs().Create(t.Context(), "k"))(t).Write(
				make([]byte, 11<<20)); err != nil {
				t.Fatal(err)
			}
			if n := must(b.Collect(t.Context(), time.Hour))(t); n != 0 {
				t.Errorf("collected %d objects that are being written", n)
			}
			<-time.After(1100 * time.Millisecond) // storages round the time to seconds
			if n := must(b.Collect(t.Context(), 0))(t); n != 1 {
				t.Errorf("collected %d objects, want 1", n)
			}
			if n := must(b.Collect(t.Context(), 0))(t); n != 0 {
				t.Errorf("collected %d objects twice", n)
			}
			if _, err := b.Blobs().Open(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("open: got %v, want %v", err, store.ErrNotFound)
			}
		})
	}
}

// TestAbortLeavesNothing aborts a blob that has parts.
func TestAbortLeavesNothing(t *testing.T) {
	c := config(t, servers.Start(t).URL)
	c.PartBytes = 5 << 20
	b, err := s3.Open(t.Context(), c, s3.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := must(b.Blobs().Create(t.Context(), "k"))(t)
	if _, err := w.Write(make([]byte, 11<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil { // waits for the removal
		t.Fatal(err)
	}
	<-time.After(1100 * time.Millisecond)
	if n := must(open(t, c).Collect(t.Context(), 0))(t); n != 0 {
		t.Errorf("%d aborted objects have parts", n)
	}
}

// TestDamageIsNoticed flips a byte of a stored object.
func TestDamageIsNoticed(t *testing.T) {
	s := servers.Start(t)
	b := open(t, config(t, s.URL))
	w := must(b.Blobs().Create(t.Context(), "k"))(t)
	if _, err := w.Write(content(10_000)); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := find(t, filepath.Join(s.Directory, servers.Bucket), "k")
	stored := must(os.ReadFile(path))(t)
	stored[5000] ^= 1
	if err := os.WriteFile(path, stored, 0o600); err != nil {
		t.Fatal(err)
	}
	if o, err := b.Blobs().Open(t.Context(), "k"); err == nil {
		got := must(io.ReadAll(io.NewSectionReader(o, 0, o.Size())))(t)
		if !bytes.Equal(got, content(10_000)) {
			t.Error("read damaged bytes without an error")
		}
	} else if !strings.Contains(err.Error(), "checksum") {
		t.Errorf("got %v, want an error about the checksum", err)
	}
}

// find returns the path of the only file with a name.
func find(t testing.TB, root, name string) (found string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() == name {
			found = path
		}
		return err
	})
	if err != nil || found == "" {
		t.Fatalf("found %q, %v", found, err)
	}
	return found
}

// TestMemoryIsBounded writes and reads blobs that are much larger than the limits.
func TestMemoryIsBounded(t *testing.T) {
	c := config(t, servers.Start(t).URL)
	c.PartBytes, c.WriteBytes, c.ReadBytes = 5<<20, 10<<20, 4<<20
	blobs := open(t, c).Blobs()
	const size, writers = 40 << 20, 2
	piece := content(1 << 20)
	runtime.GC()
	var most uint64
	measure := func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapAlloc)
	}
	measure()
	before := most
	var running sync.WaitGroup
	var mu sync.Mutex
	for i := range writers {
		key := string(rune('a' + i))
		running.Go(func() {
			w, err := blobs.Create(t.Context(), key)
			if err != nil {
				t.Error(err)
				return
			}
			for n := 0; n < size && err == nil; n += len(piece) {
				_, err = w.Write(piece)
				mu.Lock()
				measure()
				mu.Unlock()
			}
			if err == nil {
				err = w.Commit(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	for i := range writers {
		o := must(blobs.Open(t.Context(), string(rune('a'+i))))(t)
		got := make([]byte, len(piece))
		for n := int64(0); n < size; n += int64(len(piece)) {
			if _, err := o.ReadAt(got, n); err != nil || !bytes.Equal(got, piece) {
				t.Fatalf("read at %d: %v", n, err)
			}
			measure()
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
	if used := most - before; used > 64<<20 {
		t.Errorf("used %d MiB for blobs of %d MiB", used>>20, size>>20)
	}
}

// TestReadersReadOn counts the requests of a reader from start to end, and of one that jumps.
func TestReadersReadOn(t *testing.T) {
	c := config(t, servers.Start(t).URL)
	var mu sync.Mutex
	requests := map[string]int{}
	b, err := s3.Open(t.Context(), c, s3.Options{Observe: func(name string, _ time.Duration,
		_ error) {
		mu.Lock()
		defer mu.Unlock()
		requests[name]++
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	want := content(20 << 20)
	w := must(b.Blobs().Create(t.Context(), "k"))(t)
	if _, err := w.Write(want); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if requests["part"] != 3 || requests["create"] != 1 || requests["complete"] != 1 {
		t.Errorf("wrote with %v, want 3 parts", requests)
	}
	clear(requests)
	o := must(b.Blobs().Open(t.Context(), "k"))(t)
	defer o.Close()
	got := make([]byte, 0, len(want))
	buf := make([]byte, 10_001)
	for {
		n, err := o.ReadAt(buf, int64(len(got)))
		if got = append(got, buf[:n]...); err != nil {
			break
		}
	}
	if !bytes.Equal(got, want) {
		t.Errorf("read %d bytes, want %d", len(got), len(want))
	}
	if n := requests["get"]; n > 15 {
		t.Errorf("read 20 MiB from start to end with %d requests, want at most 15", n)
	}
	clear(requests)
	for i := range 20 {
		off := int64((i * 7919) % 20 << 20)
		if _, err := o.ReadAt(buf, off); err != nil || !bytes.Equal(buf, want[off:][:len(buf)]) {
			t.Errorf("read at %d: %v", off, err)
		}
	}
	if n := requests["get"]; n > 20 {
		t.Errorf("%d requests for 20 reads", n)
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
