package store

import (
	"context"
	"time"
)

// Keys remembers the answers to requests that carried an Idempotency-Key.
type Keys interface {
	// Remember stores value under the tenant's key for ttl unless one is there, and returns what is
	// there now; fresh tells whether it was stored by this call.
	Remember(ctx context.Context, tenant, key, value string, ttl time.Duration) (stored string,
		fresh bool, err error)
	// Forget removes the key, so that a request that failed may be tried again.
	Forget(ctx context.Context, tenant, key string) error
}

// Metadata is everything that stands in rows. All methods are safe for concurrent use.
type Metadata interface {
	Files
	Uploads
	Batches
	References
	Claims
	ProgressBoard
	Keys
	// Newest returns the newest time that the backend has kept of what happened: a file or batch
	// that was made, the end of a batch, the lease of a dispatcher, which lies a little ahead.
	// Zero: nothing has happened.
	Newest(ctx context.Context) (time.Time, error)
	// Ping reports whether the backend answers.
	Ping(ctx context.Context) error
	Close() error
}
