package disk

import (
	"errors"
	"os"
	"syscall"
)

// allocate reserves blocks of the file system for the file up to size. Where the file system can't
// do that, it writes the bytes.
func allocate(f *os.File, size int64) error {
	for {
		err := syscall.Fallocate(int(f.Fd()), 0, 0, size)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOSYS):
			return fill(f, size)
		default:
			return os.NewSyscallError("fallocate", err)
		}
	}
}
