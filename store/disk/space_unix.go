//go:build linux || darwin

package disk

import (
	"fmt"
	"syscall"
)

// spaceOf returns the size of the directory's file system, and its free bytes for unprivileged
// writers.
func spaceOf(dir string) (space, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return space{}, fmt.Errorf("ask for free space in %s: %w", dir, err)
	}
	block := int64(st.Bsize) //nolint:unconvert // its type differs between systems
	return space{free: int64(st.Bavail) * block, total: int64(st.Blocks) * block}, nil
}
