package store

import (
	"context"
	"time"
)

// Owner is a registered dispatcher. A node that registers again, for example after a crash, is a
// new owner, and all that its earlier incarnation held is free from then on.
type Owner struct {
	Node        string
	Incarnation int64
}

// Owners registers dispatchers and holds their leases.
type Owners interface {
	// Register makes a new owner of the node and frees what its earlier incarnations held. Its
	// lease lasts for ttl from now.
	Register(ctx context.Context, node string, ttl time.Duration) (Owner, error)
	// Renew extends the lease to ttl from now. ErrFenced: the owner is superseded, or was removed
	// after its lease had ended.
	Renew(ctx context.Context, o Owner, ttl time.Duration) error
	// Unregister frees all that the owner holds.
	Unregister(ctx context.Context, o Owner) error
	// Join adds the owner to a team, in the place of its earlier one, and returns how many owners
	// of the team have a lease that lasts. ErrFenced: the owner is superseded.
	Join(ctx context.Context, o Owner, team string) (members int, err error)
	// LiveOwners returns those of the owners whose lease lasts.
	LiveOwners(ctx context.Context, owners []Owner) ([]Owner, error)
}
