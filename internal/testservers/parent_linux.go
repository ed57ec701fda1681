package testservers

import "syscall"

// endWithParent has the kernel send a signal to the process when this one ends.
func endWithParent(attributes *syscall.SysProcAttr, signal syscall.Signal) {
	attributes.Pdeathsig = signal
}
