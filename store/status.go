package store

import (
	"context"
	"time"
)

// Status reports on a backend.
type Status interface {
	// Newest returns the newest time that the backend has stored: the creation of a file or batch,
	// the end of a batch, or the lease of an owner, which lies a little ahead of the clock. Zero:
	// nothing is stored.
	Newest(ctx context.Context) (time.Time, error)
	// Ping reports whether the backend answers.
	Ping(ctx context.Context) error
}
