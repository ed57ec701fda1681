//go:build unix && !linux

package postgres

import "syscall"

// endWithParent does nothing: where tests are killed, their servers remain.
func endWithParent(*syscall.SysProcAttr) {}
