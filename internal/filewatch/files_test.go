package filewatch

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestChanges(t *testing.T) {
	dir := t.TempDir()
	path, other, link := filepath.Join(dir, "a"), filepath.Join(dir, "b"),
		filepath.Join(dir, "link")
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(os.WriteFile(path, []byte("one"), 0o600))
	do(os.Symlink(path, link))
	f := New("", link, other)
	if !f.Changed() {
		t.Error("the first call reports no change")
	}
	for _, step := range []struct {
		what string
		do   func() error
		want bool
	}{
		{"nothing", func() error { return nil }, false},
		{"another size", func() error { return os.WriteFile(path, []byte("three"), 0o600) }, true},
		{"another time", func() error {
			return os.Chtimes(path, time.Time{}, time.Unix(1, 0))
		}, true},
		{"nothing again", func() error { return nil }, false},
		{"a file appears", func() error { return os.WriteFile(other, nil, 0o600) }, true},
		{"a file disappears", func() error { return os.Remove(other) }, true},
		{"it remains absent", func() error { return nil }, false},
		{"the link has another target", func() error {
			same := filepath.Join(dir, "c")
			do(os.WriteFile(same, []byte("three"), 0o600))
			do(os.Chtimes(same, time.Time{}, time.Unix(1, 0)))
			do(os.Symlink(same, link+"2"))
			return os.Rename(link+"2", link)
		}, true},
	} {
		do(step.do())
		if got := f.Changed(); got != step.want {
			t.Errorf("%s: got %v, want %v", step.what, got, step.want)
		}
	}
}
