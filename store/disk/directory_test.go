package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// inTime returns the error of f, which must not take long.
func inTime(t *testing.T, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on after 10 s")
		return nil
	}
}

// brokenLink makes a link to a directory that does not exist.
func brokenLink(t *testing.T, path string) {
	t.Helper()
	if err := os.Symlink(filepath.Join(t.TempDir(), "missing"), path); err != nil {
		t.Fatal(err)
	}
}

func TestOpenEndsWhereNoDirectoryCanBeMade(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	brokenLink(t, link)
	const broken = "is a link to a directory that does not exist"
	tests := map[string]string{link: broken, filepath.Join(link, "sub"): broken}
	if _, err := os.Stat("/proc/self"); err == nil {
		tests["/proc/missing/sub"] = "mkdir /proc/missing"
	}
	for dir, words := range tests {
		err := inTime(t, func() error {
			s, err := Open(dir, Options{})
			if err == nil {
				err = errors.Join(errors.New("it was opened"), s.Close())
			}
			return err
		})
		if errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got %v, want %q", dir, err, words)
		}
	}
}

func TestOpenFollowsALink(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	openStore(t, filepath.Join(link, "data"), Options{})
	openStore(t, link, Options{})
}

func TestACommitEndsBelowABrokenLink(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	brokenLink(t, filepath.Join(s.dir, "blobs", "files"))
	w, err := s.Blobs().Create(t.Context(), "files/a/b")
	if err != nil {
		t.Fatal(err)
	}
	err = inTime(t, func() error { return w.Commit(t.Context()) })
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want %v alone", err, store.ErrUnavailable)
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
}
