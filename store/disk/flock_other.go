//go:build !unix

package disk

import (
	"errors"
	"os"
)

// flock refuses: without locks two processes could take each other's files for leftovers.
func flock(*os.File, bool) (bool, error) {
	return false, errors.New(
		"this system has no flock: keep the data directory on Linux, macOS or a BSD")
}
