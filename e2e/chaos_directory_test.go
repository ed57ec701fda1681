package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A daemon whose data directory is missing is not ready, reports why, and accepts nothing. It
// continues when the directory is back.
func TestChaosDataDirectoryMissing(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(t *testing.T) (data string, remove, restore func()){
		"moved away": movable,
		"unmounted":  mountable,
	} {
		t.Run(name, func(t *testing.T) {
			tr := begin(t, "data directory "+name)
			data, remove, restore := place(t)
			stub := NewStub(t, "m")
			stub.MaxDelay = 10 * time.Millisecond
			admin := freeAddress(t)
			d := tr.Watch(
				NewDaemon(t, Options{Upstreams: []string{stub.URL}, Admin: admin, Data: data,
					Set: with("dispatch.tuning.lease_ttl=3s")}))
			c := d.Client()
			running := map[string]Lines{}
			for range sized(1, 10) {
				tr.Tried++
				lines := NewLines("gone-"+name+string(rune('a'+tr.Tried)), "m", 900)
				b := c.Submit(t, lines.Content, "")
				running[b.ID] = lines
				c.Await(t, b.ID, 10*time.Second, func(b Batch) bool {
					return b.RequestCounts.Completed > 100
				})
				remove()
				var refused statusError
				await(t, 15*time.Second, "that the daemon is not ready", func() bool {
					return errors.As(readyz(admin), &refused)
				})
				t.Logf("not ready: %.300s", refused.answer.Body)
				if _, err := c.Upload([]byte(line("lost"))); err == nil {
					t.Error("a file was accepted without a store")
				}
				if _, err := c.CreateBatch(b.InputFileID, ""); err == nil {
					t.Error("a batch was accepted without a store")
				}
				before := stub.Requests()
				time.Sleep(2 * time.Second)
				// claimed lines, whose journals are open
				if n := stub.Requests() - before; n > 12+48+16 {
					t.Errorf("%d lines were sent although their results cannot be stored", n)
				}
				restore()
				await(t, 15*time.Second, "that the daemon is ready again", func() bool {
					return readyz(admin) == nil
				})
				c.AwaitEnd(t, b.ID, 30*time.Second)
			}
			for id, lines := range running {
				b := c.AwaitEnd(t, id, 30*time.Second)
				sum := c.CheckOnce(t, b, lines)
				tr.Lost += sum.Lost
				tr.Doubled += sum.Doubled
				c.CheckComplete(t, b, lines)
				d.Verify(t, id)
			}
			tr.Resent = stub.Repeats()
		})
	}
}

// movable is a directory that can be renamed.
func movable(t *testing.T) (data string, remove, restore func()) {
	data = filepath.Join(t.TempDir(), "data")
	rename := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	return data, func() { rename(data, data+"-away") }, func() { rename(data+"-away", data) }
}

// mountable is a directory on a file system that can be unmounted while the daemon runs, as a
// volume that is detached.
func mountable(t *testing.T) (data string, remove, restore func()) {
	disk, place := smallDisk(t, 256<<20), t.TempDir()
	mounted := false
	mount := func() {
		if err := syscall.Mount(disk, place, "", syscall.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		mounted = true
	}
	unmount := func() {
		if err := syscall.Unmount(place, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
		mounted = false
	}
	mount()
	t.Cleanup(func() {
		if mounted {
			unmount()
		}
	})
	return filepath.Join(place, "data"), unmount, mount
}
