//go:build !unix

package disk

import (
	"errors"
	"os"
)

// flock returns an error. Without locks, two processes could remove each other's temporary files.
func flock(*os.File, bool) (bool, error) {
	return false, errors.New(
		"this system has no flock: keep the data directory on Linux, macOS or a BSD")
}
