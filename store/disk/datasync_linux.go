package disk

import (
	"errors"
	"os"
	"syscall"
)

// datasync leaves out what nobody needs after a crash (times), and so the file system's journal in
// most cases.
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
