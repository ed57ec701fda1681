package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/disk"
	"github.com/tidefill/tidefill/store/postgres"
)

// hasEnded reports whether the process p can't run any more, as far as self can know. It locks its
// name in the same data directory, or p ran on this machine and there is no such process.
func hasEnded(p, self store.Process) bool {
	if p.Directory != "" && p.Directory == self.Directory {
		return true
	}
	return p.Machine != "" && p.Machine == self.Machine && (p.PID == self.PID || !runs(p.PID))
}

// names claims the names under which a process registers.
type names struct {
	db   *postgres.DB
	self store.Process

	mu   sync.Mutex
	seen map[string]*store.NameTaken // by name, as of the last try
}

// newNames has the database register owners as this process, which has locked its name in the
// directory.
func newNames(db *postgres.DB, files *disk.Store) (*names, error) {
	self := store.Process{ID: rand.Text(), PID: os.Getpid(), Machine: machine()}
	var err error
	if self.Directory, err = files.ID(); err != nil {
		return nil, err
	}
	if self.Host, err = os.Hostname(); err != nil {
		return nil, fmt.Errorf("find the name of this host: %w", err)
	}
	db.RegisterAs(self)
	return &names{db: db, self: self, seen: map[string]*store.NameTaken{}}, nil
}

// errHeld is the error of a name whose holder may have ended.
type errHeld struct {
	taken *store.NameTaken
	left  time.Duration
}

func (e errHeld) Error() string {
	return fmt.Sprintf("node: %v, or did until it was killed: its lease ends in %v; waiting until "+
		"it ends or is renewed", e.taken, e.left.Round(time.Second))
}

func (e errHeld) Unwrap() error { return store.ErrUnavailable }

// claim implements store.Backend.ClaimName.
func (n *names) claim(ctx context.Context, name string, ttl time.Duration) error {
	taken, err := n.register(ctx, name, ttl)
	if taken != nil && hasEnded(taken.Holder, n.self) {
		if err = n.db.Unregister(ctx, taken.Owner); err == nil {
			taken, err = n.register(ctx, name, ttl)
		}
	}
	if taken == nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	earlier := n.seen[name]
	n.seen[name] = taken
	if earlier != nil && earlier.Owner == taken.Owner && taken.Until.After(earlier.Until) {
		return fmt.Errorf("node: %w and has just renewed its lease; give each process that "+
			"shares the store a name of its own (--node), or stop that one", taken)
	}
	return errHeld{taken, max(0, time.Until(taken.Until))}
}

// register registers a name, or returns who has it.
func (n *names) register(
	ctx context.Context, name string, ttl time.Duration,
) (taken *store.NameTaken, err error) {
	_, err = n.db.Register(ctx, name, ttl)
	errors.As(err, &taken)
	return taken, err
}
