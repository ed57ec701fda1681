package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/disk"
)

// directoryMarker is the name of the marker in a directory.
const directoryMarker = "cluster-id"

// directory is a shared directory as a place of files.
type directory struct {
	path  string
	files *disk.Store
}

func (d directory) name() string   { return "directory " + d.path }
func (d directory) key() string    { return "data" }
func (d directory) marker() string { return directoryMarker }

func (d directory) object(name string) string { return "file " + filepath.Join(d.path, name) }

func (d directory) expect(marker string) { d.files.Expect(directoryMarker, marker) }

func (d directory) misplaced(context.Context) error { return d.files.Available() }

func (d directory) remedy() string {
	return "mount the directory, or correct data"
}

// same compares no paths: machines may mount the directory at different ones.
func (d directory) same(known string) bool { return isDirectory(known) }

func (d directory) read(_ context.Context, name string) (string, error) {
	content, err := os.ReadFile(filepath.Join(d.path, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %w", store.ErrNotFound, err)
	}
	return string(content), err
}

func (d directory) write(_ context.Context, name, content string, onlyNew bool) error {
	draft, err := os.CreateTemp(d.path, name+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name())
	_, err = draft.WriteString(content)
	if err = errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return err
	}
	path := filepath.Join(d.path, name)
	if !onlyNew {
		return os.Rename(draft.Name(), path)
	}
	// A link either makes the complete file or finds one, also if several processes begin at once.
	if err = os.Link(draft.Name(), path); errors.Is(err, fs.ErrExist) {
		return store.ErrExists
	}
	return err
}
