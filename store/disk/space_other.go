//go:build !linux && !darwin

package disk

import "errors"

// FreeBytes is the room that is left on the medium; this system doesn't tell.
func (s *Store) FreeBytes() (uint64, error) {
	return 0, errors.ErrUnsupported
}
