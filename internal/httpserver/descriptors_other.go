//go:build !unix

package httpserver

// OpenFiles returns how many files the process may have open; 0: unknown.
func OpenFiles() uint64 { return 0 }
