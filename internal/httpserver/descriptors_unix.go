//go:build unix

package httpserver

import "syscall"

// OpenFiles returns how many files the process may have open; 0: unknown. The Go runtime has raised
// the limit to the hard one at start.
func OpenFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur) //nolint:unconvert // it is an int64 on FreeBSD
}
