package store

import "context"

// Locks gives each name to one owner at a time.
type Locks interface {
	// Lock gives the owner the named lock if it is free or its own, with an epoch above all earlier
	// holders'; ok is false when another living owner has it, or its own lease has run out. The
	// holder may ask again and gets the epoch it has. ErrFenced for a superseded owner. Locks end
	// with Unlock or with their owner.
	Lock(ctx context.Context, o Owner, name string) (epoch int64, ok bool, err error)
	Unlock(ctx context.Context, o Owner, name string) error
}

// Leads makes owners the leaders of runners and models.
type Leads interface {
	// Lead makes the owner the leader of all the named runners and models, or of none of them.
	// Names that another living owner leads are returned with its node; there are none when the
	// call succeeds. The epoch is above that of all earlier leaders of any of the names; a leader
	// that asks again gets its own leadership confirmed. ErrFenced for an owner that is superseded
	// or whose lease has run out: it leads nothing until it renews, and what others have taken by
	// then is lost to it. Leadership ends with Resign or with its owner.
	Lead(ctx context.Context, o Owner, names []string) (epoch int64, others map[string]string,
		err error)
	// Resign gives up names that the owner leads.
	Resign(ctx context.Context, o Owner, names []string) error
}
