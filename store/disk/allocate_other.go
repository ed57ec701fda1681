//go:build !linux

package disk

import "os"

// allocate writes the file up to size, so that its blocks are in use.
func allocate(f *os.File, size int64) error { return fill(f, size) }
