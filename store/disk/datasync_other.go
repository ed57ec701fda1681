//go:build !linux

package disk

import "os"

func datasync(f *os.File) error { return f.Sync() }
