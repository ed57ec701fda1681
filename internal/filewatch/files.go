// Package filewatch detects changed files by polling their metadata. This also works for files that
// are replaced by a rename, and for the symbolic links by which Kubernetes replaces mounted
// secrets.
package filewatch

import (
	"os"
	"slices"
)

// Files is a set of files to watch.
type Files struct {
	paths []string
	seen  []os.FileInfo // by path; nil: the file does not exist
}

// New returns the set of files with these paths. Empty paths are ignored.
func New(paths ...string) *Files {
	f := &Files{}
	for _, path := range paths {
		if path != "" {
			f.paths = append(f.paths, path)
		}
	}
	return f
}

// Equal reports whether the set is that of files with these paths.
func (f *Files) Equal(paths ...string) bool { return slices.Equal(f.paths, New(paths...).paths) }

// Changed reports whether a file was replaced, or has another size or modification time, since the
// last call. The first call returns true. Read the files after the call: a change in between is
// then reported by the next one.
func (f *Files) Changed() bool {
	now := make([]os.FileInfo, len(f.paths))
	changed := f.seen == nil
	for i, path := range f.paths {
		if info, err := os.Stat(path); err == nil {
			now[i] = info
		}
		changed = changed || !same(f.seen[i], now[i])
	}
	f.seen = now
	return changed
}

func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
