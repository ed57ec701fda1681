//go:build !linux

package disk

import "os"

// allocate gives the file real room up to size.
func allocate(f *os.File, size int64) error { return fill(f, size) }
