package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// tmpDir is the directory of one process for blobs that are not committed yet. Its lock shows to
// other processes that this one runs.
type tmpDir struct {
	path string
	lock *os.File
}

// openTmp creates a directory for this process below root and removes those of processes that have
// ended.
func openTmp(root string) (t tmpDir, err error) {
	// One process at a time, or a directory could be removed between its creation and its lock.
	gate, err := os.OpenFile(filepath.Join(root, "gate"), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return t, translate(err)
	}
	defer gate.Close()
	if _, err := flock(gate, true); err != nil {
		return t, err
	}
	if err := sweep(root); err != nil {
		return t, fmt.Errorf("remove directories of ended processes: %w", err)
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

// sweep removes the directories of processes that have ended.
func sweep(root string) error {
	dirs, err := filepath.Glob(filepath.Join(root, "process-*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		lock, err := os.OpenFile(lockOf(dir), os.O_RDWR|os.O_CREATE, 0o640)
		if errors.Is(err, os.ErrNotExist) {
			continue // its process has just ended
		} else if err != nil {
			return err
		}
		ended, err := flock(lock, false)
		if err == nil && ended {
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
