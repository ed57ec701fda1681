package sqlite

import (
	"errors"
	"fmt"
	"os"

	"github.com/tidefill/tidefill/store"
)

// identity notices when the files that were opened no longer stand under their names: they were
// deleted, replaced or unmounted under the process. What is committed then is lost. SQLite keeps
// the files open, so their inodes aren't given to others, and it removes its WAL only with the last
// connection of all.
type identity []identified

type identified struct {
	path   string
	opened os.FileInfo
}

// identify remembers the files as they are now. They must not be opened for that: closing them
// would end SQLite's locks.
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

// check returns ErrUnavailable while a file is gone.
func (files identity) check() error {
	for _, f := range files {
		now, err := os.Stat(f.path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("%w: %s is gone: put it back, or restart with another",
				store.ErrUnavailable, f.path)
		case err != nil:
			return fmt.Errorf("%w: look at %s: %w", store.ErrUnavailable, f.path, err)
		case !os.SameFile(f.opened, now):
			return fmt.Errorf(
				"%w: %s is another file than the one that was opened: was its directory replaced or unmounted? Put it back, or restart",
				store.ErrUnavailable, f.path)
		}
	}
	return nil
}
