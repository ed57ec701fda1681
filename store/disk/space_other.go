//go:build !linux && !darwin

package disk

import "errors"

// spaceOf returns errors.ErrUnsupported: this system doesn't say how much is left.
func spaceOf(string) (space, error) { return space{}, errors.ErrUnsupported }
