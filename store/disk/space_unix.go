//go:build linux || darwin

package disk

import (
	"fmt"
	"syscall"
)

// FreeBytes is the room that is left on the medium for unprivileged writers.
func (s *Store) FreeBytes() (uint64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(s.dir, &st); err != nil {
		return 0, fmt.Errorf("ask for free space in %s: %w", s.dir, err)
	}
	return st.Bavail * uint64(st.Bsize), nil
}
