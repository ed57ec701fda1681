//go:build unix

package cluster

import (
	"errors"
	"syscall"
)

// runs reports whether there is a process with the id.
func runs(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
