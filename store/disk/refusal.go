package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/tidefill/tidefill/store"
)

// refusal wraps an error of Open in store.ErrRefused, with a remedy, if the system permits this
// user no use of the directory, or if something else is in its place. Only an operator ends that.
// The same errors of an open directory are store.ErrUnavailable alone: it may be unmounted, and
// come back.
func refusal(dir string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %w; a part of this path is a file: move it away, or choose "+
			"another --data", store.ErrRefused, err)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		remedy := "give"
		if _, missing := os.Stat(dir); errors.Is(missing, fs.ErrNotExist) {
			remedy = "create it, and give"
		}
		return fmt.Errorf("%w: %w; %s user %d write access to %s and all in it, or choose "+
			"another --data", store.ErrRefused, err, remedy, os.Geteuid(), dir)
	}
	return err
}
