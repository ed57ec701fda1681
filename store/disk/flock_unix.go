//go:build unix

package disk

import (
	"os"
	"syscall"
)

// flock takes the advisory lock of an open file; it goes with the last descriptor, so a dead
// process holds none. Without wait it returns false when another process has it.
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
