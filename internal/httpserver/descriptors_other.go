//go:build !unix

package httpserver

// OpenFiles returns the number of files that the process may have open; 0: unknown.
func OpenFiles() uint64 { return 0 }
