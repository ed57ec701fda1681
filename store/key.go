package store

import (
	"context"
	"time"
)

// Keys remembers the answers to requests that carried an Idempotency-Key.
type Keys interface {
	// Remember stores value under the tenant's key for ttl unless the key has a value, and returns
	// the value that the key has now. fresh reports whether this call stored it.
	Remember(ctx context.Context, tenant, key, value string, ttl time.Duration) (stored string,
		fresh bool, err error)
	// Forget removes the key if it has the value, so that a request that failed may be tried again.
	Forget(ctx context.Context, tenant, key, value string) error
}
