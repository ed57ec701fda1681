package disk

import (
	"errors"
	"os"
	"syscall"
)

// datasync makes the bytes and the size of a file durable, without its times. So it needs no write
// of the file system's journal in most cases.
func datasync(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failure error
	err = raw.Control(func(fd uintptr) {
		for {
			if failure = syscall.Fdatasync(int(fd)); failure != syscall.EINTR {
				return
			}
		}
	})
	return errors.Join(err, failure)
}
