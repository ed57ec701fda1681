//go:build unix && !linux

package testservers

import "syscall"

// endWithParent does nothing: where tests are killed, their servers remain.
func endWithParent(*syscall.SysProcAttr, syscall.Signal) {}
