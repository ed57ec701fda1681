package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/tidefill/tidefill/store"
)

// wantRefusal fails the test unless the error is a refusal with the remedy.
func wantRefusal(t *testing.T, what string, err error, remedy string) {
	t.Helper()
	if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), remedy) {
		t.Errorf("%s: got %v, want %v with %q", what, err, store.ErrRefused, remedy)
	}
}

func TestOpenRefusesAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "sub")} {
		_, err := Open(dir, Options{})
		wantRefusal(t, dir, err, "not a directory; a part of this path is a file: move it away, or")
	}
}

func TestOpenRefusesADirectoryOfAnotherUser(t *testing.T) {
	readOnly := t.TempDir()
	err := errors.Join(os.Chmod(filepath.Dir(readOnly), 0o755), os.Chmod(readOnly, 0o555))
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		defer withoutRoot(t)()
	}
	access := fmt.Sprintf("give user %d write access to ", os.Geteuid())
	_, err = Open(readOnly, Options{})
	wantRefusal(t, "read-only", err, "; "+access+readOnly)
	missing := filepath.Join(readOnly, "missing")
	_, err = Open(missing, Options{})
	wantRefusal(t, "missing", err, "; create it, and "+access+missing)
}

// withoutRoot takes root's access to all files from this goroutine until the returned function is
// called: files are opened as another user, on a thread of its own.
func withoutRoot(t *testing.T) (again func()) {
	const nobody = 65534
	runtime.LockOSThread()
	if err := syscall.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := syscall.Setfsuid(0); err != nil {
			t.Error(err)
		}
		runtime.UnlockOSThread()
	}
}

func TestRefusal(t *testing.T) {
	dir := t.TempDir()
	for cause, refused := range map[error]bool{
		syscall.EACCES: true, syscall.EPERM: true, syscall.ENOTDIR: true,
		syscall.EIO: false, syscall.ESTALE: false, syscall.EROFS: false, syscall.ENOENT: false,
	} {
		err := refusal(dir, translate(&os.PathError{Op: "mkdir", Path: dir, Err: cause}))
		if errors.Is(err, store.ErrRefused) != refused || !errors.Is(err, cause) {
			t.Errorf("%v: got %v, want refused %t", cause, err, refused)
		}
	}
}

// An open directory that can't be used may come back, so its errors are no refusals.
func TestAnOpenDirectoryIsNotRefused(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "data"), Options{})
	if err := os.Rename(s.dir, s.dir+"-away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.presence.expire()
	_, err := s.Blobs().Create(t.Context(), "files/f")
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrRefused) {
		t.Errorf("got %v, want %v alone", err, store.ErrUnavailable)
	}
	if err := errors.Join(os.Remove(s.dir), os.Rename(s.dir+"-away", s.dir)); err != nil {
		t.Fatal(err)
	}
}
