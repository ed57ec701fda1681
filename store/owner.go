package store

import (
	"context"
	"time"
)

// Owner is a registered dispatcher. A node that registers again (after a crash, say) is a new
// owner, and all that its earlier self held is free at that moment.
type Owner struct {
	Node        string
	Incarnation int64
}

// Owners registers dispatchers and keeps their leases.
type Owners interface {
	// Register makes a new owner of the node and frees what its earlier incarnations held. The
	// lease lives for ttl from now.
	Register(ctx context.Context, node string, ttl time.Duration) (Owner, error)
	// Renew prolongs the lease; ErrFenced when the owner is superseded or was let expire and
	// reaped.
	Renew(ctx context.Context, o Owner, ttl time.Duration) error
	// Unregister frees all that the owner holds.
	Unregister(ctx context.Context, o Owner) error
	// LiveOwners returns those of the owners whose lease lasts.
	LiveOwners(ctx context.Context, owners []Owner) ([]Owner, error)
}
