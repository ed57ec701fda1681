package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// LockDatabase takes the write lock of a data directory's database, as a process does that is
// frozen within a transaction (BEGIN IMMEDIATE). Readers are not blocked. unlock releases it.
func LockDatabase(t testing.TB, data string) (unlock func()) {
	t.Helper()
	index, err := os.OpenFile(filepath.Join(data, "tidefill.db-shm"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	// In WAL mode a writer holds byte 120 of the index: UNIX_SHM_BASE + WAL_WRITE_LOCK in
	// SQLite's os_unix.c and wal.c.
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: 120, Len: 1}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		err := syscall.FcntlFlock(index.Fd(), syscall.F_SETLK, &lock)
		if err == nil {
			return func() { index.Close() }
		}
		if time.Now().After(deadline) {
			t.Fatalf("lock the database: %v", err)
		}
	}
}
