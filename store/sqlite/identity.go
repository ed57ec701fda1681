package sqlite

import (
	"errors"
	"fmt"
	"os"

	"github.com/tidefill/tidefill/store"
)

// identity detects that the opened files are no longer at their paths: they were deleted, replaced
// or unmounted while the process runs. Later commits would be lost. SQLite holds the files open, so
// their inodes are not reused, and it removes its WAL only with the last connection.
type identity []identified

type identified struct {
	path   string
	opened os.FileInfo
}

// identify returns the identity of the files at the paths. It does not open them, since closing
// them would end SQLite's locks.
func identify(paths ...string) (identity, error) {
	files := make(identity, len(paths))
	for i, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		files[i] = identified{path, info}
	}
	return files, nil
}

// check returns ErrUnavailable while a file is missing or replaced.
func (files identity) check() error {
	for _, f := range files {
		now, err := os.Stat(f.path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("%w: %s is missing: move it back, or restart with another one",
				store.ErrUnavailable, f.path)
		case err != nil:
			return fmt.Errorf("%w: inspect %s: %w", store.ErrUnavailable, f.path, err)
		case !os.SameFile(f.opened, now):
			return fmt.Errorf("%w: %s is not the file that was opened; was its directory replaced "+
				"or unmounted? Move it back, or restart", store.ErrUnavailable, f.path)
		}
	}
	return nil
}
