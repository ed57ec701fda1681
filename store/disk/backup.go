package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tidefill/tidefill/store"
)

// Backup adds to the directory to what it lacks of the blobs and journals of the store in from,
// which may be in use. Blobs never change, so they are hard links where the file system permits.
// Journals grow, so they are copied again. Files that are removed meanwhile are left out.
func Backup(ctx context.Context, from, to string, sum *store.Backup) error {
	for _, part := range []struct {
		name string
		add  func(source, target string, sum *store.Backup) error
	}{{"blobs", backUpBlob}, {"journals", backUpJournal}} {
		root := filepath.Join(from, part.name)
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil || !entry.Type().IsRegular() {
				return ignoreGone(err)
			}
			rel, err := filepath.Rel(from, path)
			if err != nil {
				return err
			}
			target := filepath.Join(to, rel)
			if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
				return err
			}
			return ignoreGone(part.add(path, target, sum))
		})
		if err != nil {
			return fmt.Errorf("back up %s: %w", root, translate(err))
		}
	}
	return nil
}

// ignoreGone returns no error for a file that exists no more.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func backUpBlob(source, target string, sum *store.Backup) error {
	err := os.Link(source, target)
	switch {
	case errors.Is(err, fs.ErrExist): // from an earlier pass
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil: // another file system, or one without links
		var n int64
		if n, err = copyFile(source, target); err != nil {
			return err
		}
		sum.CopiedBytes += n
	}
	sum.Blobs++
	return nil
}

func backUpJournal(source, target string, sum *store.Backup) error {
	_, err := os.Stat(target)
	n, copyErr := copyFile(source, target)
	if copyErr != nil {
		return copyErr
	}
	if errors.Is(err, fs.ErrNotExist) {
		sum.Journals++
	}
	sum.CopiedBytes += n
	return nil
}

// copyFile copies a file and makes its bytes durable.
func copyFile(source, target string) (n int64, err error) {
	in, err := os.Open(source)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(out, in)
	return n, errors.Join(err, out.Sync(), out.Close())
}

// SyncTree makes the entries of a directory, and of those below it, durable.
func SyncTree(root string) error {
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return syncDir(path)
	})
	if err != nil {
		return fmt.Errorf("sync %s: %w", root, err)
	}
	return nil
}
