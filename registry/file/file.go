// Package file reads the documents of a registry from a directory, and notices when they change.
package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/internal/filewatch"
	"github.com/tidefill/tidefill/internal/strictyaml"
	"github.com/tidefill/tidefill/registry"
)

// maxFiles limits the files of a directory.
const maxFiles = 200

// Directory is a directory of documents: the files whose names end with .yaml or .yml, but for
// those that begin with a dot. A mounted ConfigMap is one. Its methods are called by one goroutine.
type Directory struct {
	path  string
	names []string
	files *filewatch.Files
	// settling is the number of calls since which files change and may still be written.
	settling int
}

// maxSettling is the number of calls after which files are read that change in each of them.
const maxSettling = 5

// New returns a directory. It reads nothing.
func New(path string) *Directory { return &Directory{path: path} }

// Read returns the documents by name if a file was added, changed or removed since the last call,
// and reports that as changed; the first call does. A change is read when the files were the same
// in two calls, since somebody may be writing them, but not later than after maxSettling calls. If
// the directory can't be read, nothing is known of its documents. A document that can't be read has
// an error of its own.
func (d *Directory) Read() (documents []registry.Document, changed bool, err error) {
	names, err := d.list()
	if err != nil {
		return nil, false, err
	}
	first := d.files == nil
	if first || !slices.Equal(names, d.names) {
		d.names, d.files = names, filewatch.New(names...)
	}
	switch changed := d.files.Changed(); {
	case first:
	case changed && d.settling < maxSettling:
		d.settling++
		return nil, false, nil
	case !changed && d.settling == 0:
		return nil, false, nil
	}
	d.settling = 0
	for _, name := range names {
		text, err := readFile(name)
		documents = append(documents, registry.Document{Name: name, Text: text, Err: err})
	}
	return documents, true, nil
}

func (d *Directory) list() (names []string, err error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("read the registry's directory: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		known := strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
		if known && !strings.HasPrefix(name, ".") && !e.IsDir() {
			names = append(names, filepath.Join(d.path, name))
		}
	}
	if len(names) > maxFiles {
		return nil, fmt.Errorf("the registry's directory %s has %d files, at most %d are read; "+
			"join some of them", d.path, len(names), maxFiles)
	}
	return names, nil
}

// readFile reads a file. A pipe would never end, so only regular files are read.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, withoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is no regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, strictyaml.MaxBytes+1)) // more is a fault
	return text, withoutPath(err)
}

// withoutPath returns an error without the path, which messages have already.
func withoutPath(err error) error {
	if of := new(os.PathError); errors.As(err, &of) {
		return of.Err
	}
	return err
}
