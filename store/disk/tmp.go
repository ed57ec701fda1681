package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// tmpDir is where one process keeps blobs that aren't committed yet. Its lock tells others that the
// process lives.
type tmpDir struct {
	path string
	lock *os.File
}

// openTmp makes a directory for this process below root and removes those of dead ones.
func openTmp(root string) (t tmpDir, err error) {
	// One process at a time, or a directory could be swept between its creation and its lock.
	gate, err := os.OpenFile(filepath.Join(root, "gate"), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return t, translate(err)
	}
	defer gate.Close()
	if _, err := flock(gate, true); err != nil {
		return t, err
	}
	if err := sweep(root); err != nil {
		return t, fmt.Errorf("remove what was left half written: %w", err)
	}
	if t.path, err = os.MkdirTemp(root, "process-"); err != nil {
		return t, translate(err)
	}
	t.lock, err = os.OpenFile(lockOf(t.path), os.O_RDWR|os.O_CREATE, 0o640)
	if err == nil {
		_, err = flock(t.lock, false)
	}
	return t, err
}

func lockOf(dir string) string { return filepath.Join(dir, "lock") }

func sweep(root string) error {
	dirs, err := filepath.Glob(filepath.Join(root, "process-*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		lock, err := os.OpenFile(lockOf(dir), os.O_RDWR|os.O_CREATE, 0o640)
		if errors.Is(err, os.ErrNotExist) {
			continue // its process has just closed
		} else if err != nil {
			return err
		}
		dead, err := flock(lock, false)
		if err == nil && dead {
			err = os.RemoveAll(dir)
		}
		if err := errors.Join(err, lock.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (t tmpDir) close() error {
	return errors.Join(os.RemoveAll(t.path), t.lock.Close())
}
