package e2e

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// wantUnavailable fails the test unless the request was refused because of the store, with
// Retry-After.
func wantUnavailable(t *testing.T, what string, err error) {
	t.Helper()
	refused := statusError{}
	if !errors.As(err, &refused) || refused.answer.Status != http.StatusServiceUnavailable ||
		refused.answer.Header.Get("Retry-After") == "" {
		t.Errorf("%s without a store: %v", what, err)
	}
}

func TestMissingDataDirectoryIsNoticed(t *testing.T) {
	for _, test := range []struct {
		name     string
		takeAway func(t *testing.T, data string)
		back     func(t *testing.T, data string)
	}{
		{"moved", func(t *testing.T, data string) { check(t, os.Rename(data, data+"-away")) },
			func(t *testing.T, data string) { check(t, os.Rename(data+"-away", data)) }},
		{"deleted", removeAll, nil},
		{"unmounted", func(t *testing.T, data string) {
			check(t, syscall.Unmount(filepath.Dir(data), syscall.MNT_DETACH))
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.name != "deleted" {
				long(t, "another way to lose a directory")
			}
			dir := t.TempDir()
			if test.name == "unmounted" {
				dir = mounted(t, 64<<20)
			}
			stub := NewStub(t, "m")
			stub.MinDelay, stub.MaxDelay = 20*time.Millisecond, 40*time.Millisecond
			admin := freeAddress(t)
			d := NewDaemon(t, Options{
				Upstreams: []string{stub.URL}, Data: filepath.Join(dir, "data"), Set: small,
				Args: []string{"--admin-listen", admin},
			})
			c := d.Client()
			ready := "http://" + admin + "/readyz"
			awaitStatus(t, ready, http.StatusOK)
			lines := NewLines("missing", "m", 400)
			b := c.Submit(t, lines.Content, "")
			c.Await(t, b.ID, 10*time.Second, func(b Batch) bool {
				return b.RequestCounts.Completed > 20
			})

			test.takeAway(t, d.Data)
			if text := awaitStatus(t, ready, http.StatusServiceUnavailable); !strings.Contains(
				text, d.Data) {
				t.Errorf("readiness does not name the directory: %s", text)
			}
			_, err := c.Upload(lines.Content)
			wantUnavailable(t, "an upload", err)
			_, err = c.CreateBatch(b.InputFileID, "")
			wantUnavailable(t, "a batch", err)
			answer, err := c.Do("POST", "/v1/batches/"+b.ID+"/cancel", "", nil)
			if err != nil || answer.Status != http.StatusServiceUnavailable {
				t.Errorf("a cancellation without a store: %d, %v", answer.Status, err)
			}
			if test.back == nil {
				time.Sleep(2 * time.Second) // it checks every second
				if left, err := os.ReadDir(d.Data); err == nil {
					t.Errorf("the directory was created again, with %v", left)
				}
				awaitStatus(t, ready, http.StatusServiceUnavailable)
				return
			}
			test.back(t, d.Data)
			awaitStatus(t, ready, http.StatusOK)
			c.CheckComplete(t, c.AwaitEnd(t, b.ID, 30*time.Second), lines)
			d.Verify(t, b.ID)
		})
	}
}

// removeAll removes a directory that the daemon may still add files to.
func removeAll(t *testing.T, dir string) {
	t.Helper()
	err := os.RemoveAll(dir)
	for deadline := time.Now().Add(5 * time.Second); err != nil && time.Now().Before(deadline); {
		err = os.RemoveAll(dir)
	}
	check(t, err)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mounted mounts a small disk that the test unmounts itself.
func mounted(t *testing.T, size int) string {
	t.Helper()
	dir := smallDisk(t, size)
	inner := filepath.Join(dir, "inner")
	check(t, os.Mkdir(inner, 0o755))
	if err := syscall.Mount("tmpfs", inner, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Unmount(inner, syscall.MNT_DETACH) })
	return inner
}

func TestLockedDatabase(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	stub.MinDelay, stub.MaxDelay = 5*time.Millisecond, 20*time.Millisecond
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Set: small})
	c := d.Client()
	lines := NewLines("locked", "m", 300)
	b := c.Submit(t, lines.Content, "")
	c.Await(t, b.ID, 10*time.Second, func(b Batch) bool { return b.RequestCounts.Completed > 20 })
	unlock := lockDatabase(t, d.Data)
	var writing sync.WaitGroup
	for range 8 {
		writing.Go(func() {
			began := time.Now()
			_, err := c.Upload(lines.Content)
			wantUnavailable(t, "an upload", err)
			// A write waits 5 s for the lock, and may begin after another one that waits as long.
			if took := time.Since(began); took > 13*time.Second {
				t.Errorf("an upload waited %v for the lock, want about 10s at most", took)
			}
		})
	}
	writing.Wait()
	if _, err := c.Batch(b.ID); err != nil {
		t.Errorf("a read during the lock: %v", err)
	}
	unlock()
	c.CheckComplete(t, c.AwaitEnd(t, b.ID, 60*time.Second), lines)
	d.Verify(t, b.ID)
	if n := stub.Requests(); n != 300 {
		t.Errorf("%d requests for 300 lines", n)
	}
}

// lockDatabase takes the lock of SQLite's writers in WAL mode, as a process does that is frozen
// during a write.
func lockDatabase(t *testing.T, data string) (unlock func()) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(data, "tidefill.db-shm"), os.O_RDWR, 0)
	check(t, err)
	const writeLock = 120 // its offset in the file
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: 0, Start: writeLock, Len: 1}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if err = syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &lock); err == nil ||
			time.Now().After(deadline) {
			break
		}
	}
	check(t, err)
	return func() { f.Close() }
}
