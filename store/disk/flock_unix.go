//go:build unix

package disk

import (
	"os"
	"syscall"
)

// flock locks an open file. The lock ends with the last descriptor, so with the process at the
// latest. Without wait it returns false if another process holds the lock.
func flock(f *os.File, wait bool) (bool, error) {
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err := syscall.Flock(int(f.Fd()), how)
		switch err {
		case nil:
			return true, nil
		case syscall.EINTR:
		case syscall.EWOULDBLOCK:
			return false, nil
		default:
			return false, os.NewSyscallError("flock", err)
		}
	}
}
