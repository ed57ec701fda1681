package store

import (
	"context"
	"fmt"
	"time"
)

// Owner is a registered dispatcher. A node that registers again, for example after a crash, is a
// new owner, and all that its earlier incarnation held is free from then on.
type Owner struct {
	Node        string
	Incarnation int64
}

// Process is a run of a program that registers owners with a store of several machines.
type Process struct {
	ID   string // random
	Host string
	PID  int
	// Machine names what PID counts in: the run of the host's system, and the container. Empty: it
	// is not known.
	Machine string
	// Directory is the random id of the process's data directory. Empty: it is not known.
	Directory string
}

// String names the process for people.
func (p Process) String() string {
	if p.ID == "" {
		return "another process"
	}
	return fmt.Sprintf("process %d on host %s", p.PID, p.Host)
}

// NameTaken is the error of Register if another process has the name and its lease lasts.
type NameTaken struct {
	Owner  Owner
	Holder Process
	Until  time.Time // the end of its lease, by the clock of the store
}

// Error implements error.
func (e *NameTaken) Error() string {
	return fmt.Sprintf("%v runs under the name %s", e.Holder, e.Owner.Node)
}

// Owners registers dispatchers and holds their leases.
type Owners interface {
	// Register makes a new owner of the node and frees what its earlier incarnations held. Its
	// lease lasts for ttl from now. A *NameTaken: another process has the name. A store of one
	// machine does not return it, since names are locked there.
	Register(ctx context.Context, node string, ttl time.Duration) (Owner, error)
	// Renew extends the lease to ttl from now. ErrFenced: the owner is superseded, or was removed
	// after its lease had ended. The error says by which process, if the store knows.
	Renew(ctx context.Context, o Owner, ttl time.Duration) error
	// Unregister frees all that the owner holds.
	Unregister(ctx context.Context, o Owner) error
	// Join adds the owner to a team, in the place of its earlier one. It returns the number of
	// owners of the team whose lease lasts. ErrFenced: the owner is superseded.
	Join(ctx context.Context, o Owner, team string) (members int, err error)
	// LiveOwners returns those of the owners whose lease lasts.
	LiveOwners(ctx context.Context, owners []Owner) ([]Owner, error)
}
