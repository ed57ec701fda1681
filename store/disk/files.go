package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tidefill/tidefill/store"
)

// file is an open file as journals and blobs use it. Tests replace it to make the medium fail.
type file interface {
	io.ReaderAt
	io.Writer
	io.Closer
	// Sync makes the bytes and the size durable.
	Sync() error
	Size() (int64, error)
}

// openFile opens a file of the system.
func openFile(path string, flag int) (file, error) {
	f, err := os.OpenFile(path, flag, 0o640)
	if err != nil {
		return nil, translate(err)
	}
	return osFile{f}, nil
}

type osFile struct{ *os.File }

func (f osFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(b, off)
	return n, translate(err)
}

func (f osFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	return n, translate(err)
}

func (f osFile) Sync() error { return translate(datasync(f.File)) }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// unavailable holds the system's errors for a medium that does not work now, or that the process
// can't use as it is configured.
var unavailable = []error{
	syscall.EIO, syscall.EROFS, syscall.EACCES, syscall.EPERM, syscall.ENXIO, syscall.ENODEV,
	syscall.ESTALE,
	syscall.ETIMEDOUT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOTDIR,
}

// translate wraps the system's errors for a full medium, a missing file and a failing medium in
// those of package store.
func translate(err error) error {
	switch {
	case err == nil || err == io.EOF:
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", store.ErrNoSpace, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", store.ErrNotFound, err)
	}
	for _, e := range unavailable {
		if errors.Is(err, e) {
			return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
	}
	return err
}

// makeDir creates the directory and its missing parents durably. It tries each path once more at
// most: a parent can exist and hold nothing, such as /proc.
func makeDir(path string) error {
	err := os.Mkdir(path, 0o750)
	if parent := filepath.Dir(path); errors.Is(err, fs.ErrNotExist) && parent != path {
		if err := makeDir(parent); err != nil {
			return err
		}
		err = os.Mkdir(path, 0o750)
	}
	switch {
	case err == nil:
		return syncDir(filepath.Dir(path))
	case errors.Is(err, fs.ErrExist):
		return checkDir(path)
	}
	return translate(err)
}

// checkDir returns an error unless the path, which exists, is a directory or a link to one.
func checkDir(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s is a link to a directory that does not exist; create that one, "+
			"or remove the link", store.ErrNotFound, path)
	case err == nil && !info.IsDir():
		err = &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOTDIR}
	}
	return translate(err)
}

// syncDir makes the entries of a directory durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return translate(err)
	}
	return errors.Join(translate(d.Sync()), d.Close())
}
