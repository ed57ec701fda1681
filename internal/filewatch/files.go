// Package filewatch notices that files have changed, by asking for their state. That also works for
// files that are replaced by a rename and for the links by which Kubernetes replaces mounted
// secrets.
package filewatch

import "os"

// Files are watched together.
type Files struct {
	paths []string
	seen  []os.FileInfo // nil: not there
}

// New watches the files of these paths; empty ones are left out.
func New(paths ...string) *Files {
	f := &Files{}
	for _, path := range paths {
		if path != "" {
			f.paths = append(f.paths, path)
		}
	}
	return f
}

// Changed reports whether a file is another one, or has another size or time of modification, than
// when it was asked last; the first time it does. Read the files after asking: a change in between
// is then reported next time.
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
