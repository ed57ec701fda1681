package store

import "context"

// Locks gives each name to one owner at a time.
type Locks interface {
	// Lock gives the owner the named lock if it is free, with an epoch above those of all earlier
	// holders. ok is false if an owner whose lease lasts holds it, or if the lease of o has ended.
	// The holder gets the epoch that it has. ErrFenced: o is superseded. A lock ends with Unlock or
	// with its owner.
	Lock(ctx context.Context, o Owner, name string) (epoch int64, ok bool, err error)
	// Unlock frees a lock that the owner holds.
	Unlock(ctx context.Context, o Owner, name string) error
}

// LeadState says how a leadership is, or how it ended without being resigned.
type LeadState string

const (
	LeadLasts   LeadState = "lasts"   // the lease of its owner lasts
	LeadExpired LeadState = "expired" // the lease of its owner has ended
	LeadStopped LeadState = "stopped" // its owner unregistered, or its node registered again
)

// LastLead is the last leadership of a name, unless it was resigned.
type LastLead struct {
	Node  string
	State LeadState
}

// Leads makes owners the leaders of runners and models.
type Leads interface {
	// Lead makes the owner the leader of all the named runners and models, or of none of them. It
	// returns the names that other owners lead whose lease lasts, with their nodes; there are none
	// if it succeeds. The epoch is above those of all earlier leaders of any of the names. Lead
	// confirms the leadership of an owner that leads all of them. ErrFenced: o is superseded, or
	// its lease has ended; it leads nothing until it renews, and loses what others lead by then.
	// Leadership ends with Resign or with its owner.
	Lead(ctx context.Context, o Owner, names []string) (epoch int64, others map[string]string,
		err error)
	// Leaders returns the nodes of the owners that lead the names and whose lease lasts.
	Leaders(ctx context.Context, names []string) (map[string]string, error)
	// LastLeads returns the last leadership of each name that has had one which was not resigned.
	LastLeads(ctx context.Context, names []string) (map[string]LastLead, error)
	// Resign ends the leadership of those of the names that the owner leads.
	Resign(ctx context.Context, o Owner, names []string) error
}
