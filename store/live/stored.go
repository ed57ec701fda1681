package live

import (
	"context"
	"strings"

	"github.com/tidefill/tidefill/store"
)

// Stored has the snapshots of processes that exchange nothing but what is in their store. It writes
// no more often than it is called. The store has them beside what was learned of pools, under names
// that no pool has.
type Stored struct{ States States }

// States are what was learned of pools, as a registered process writes it.
type States interface {
	SaveStates(ctx context.Context, states []store.LearnedState) error
	States(ctx context.Context, kind string) ([]store.LearnedState, error)
}

// storedName begins the names of snapshots among those of pools.
const storedName = "*"

// Publish implements [Snapshots]. The node and the epoch are not stored, and the data has at most
// [store.MaxLearnedBytes].
func (s Stored) Publish(ctx context.Context, kind string, of Snapshot) error {
	return s.States.SaveStates(ctx, []store.LearnedState{{Pool: storedName + of.Name, Kind: kind,
		Data: of.Data}})
}

// Snapshots implements [Snapshots]. It returns also those that are older than KeepSnapshots.
func (s Stored) Snapshots(ctx context.Context, kind string) (all []Snapshot, err error) {
	states, err := s.States.States(ctx, kind)
	for _, state := range states {
		if name, is := strings.CutPrefix(state.Pool, storedName); is {
			all = append(all, Snapshot{Name: name, Data: state.Data, Age: max(0, state.Age)})
		}
	}
	return all, err
}

// Forget removes a snapshot.
func (s Stored) Forget(ctx context.Context, of Snapshot, records store.LearnedStates) error {
	_, err := records.ForgetLearned(ctx, storedName+of.Name)
	return err
}
