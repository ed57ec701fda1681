//go:build !linux

package disk

import "os"

// datasync makes the bytes and the size of a file durable.
func datasync(f *os.File) error { return f.Sync() }
