//go:build !linux && !darwin

package disk

import "errors"

// spaceOf returns errors.ErrUnsupported, since this system does not report free space.
func spaceOf(string) (space, error) { return space{}, errors.ErrUnsupported }
