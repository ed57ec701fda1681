package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/live"
)

// The kinds of what is kept of pools and published for other processes, and the version of their
// form.
const (
	learnedKind  = "scaling"
	snapshotKind = "snapshot"
	keptVersion  = 1
)

// What was learned is kept this often, and the snapshot whenever it changes, or so often.
const (
	keepLearnedEvery  = time.Minute
	keepSnapshotEvery = 15 * time.Second
)

// memory keeps in the store what was learned, for the process that decides next, and publishes the
// last snapshot, for those that do not decide.
type memory struct {
	dispatcher Dispatcher
	snapshots  live.Snapshots
	log        *slog.Logger

	loaded       bool // the fleet has what was learned before
	learnedAt    time.Time
	snapshotAt   time.Time
	lastSnapshot *autoscale.Snapshot
}

// keptLearned is the form in which what was learned of a pool is kept.
type keptLearned struct {
	Version int
	autoscale.PoolLearned
}

// keptSnapshot is the form in which a snapshot is kept.
type keptSnapshot struct {
	Version int
	autoscale.Snapshot
}

// load hands over to the fleet what was learned before, once. Nothing may be decided before.
func (d *Driver) load(ctx context.Context) error {
	if d.memory.loaded {
		return nil
	}
	recalled, err := d.memory.load(ctx, d.fleet)
	if err == nil {
		d.record.handedOver(recalled)
	}
	return err
}

// load hands over to a fleet what was learned before, and returns it.
func (m *memory) load(
	ctx context.Context, fleet *autoscale.Fleet,
) (recalled []autoscale.Recalled, err error) {
	states, err := m.dispatcher.States(ctx, learnedKind)
	if err != nil {
		return nil, fmt.Errorf("read what was learned of the pools: %w", err)
	}
	now := time.Now()
	for _, state := range states {
		var kept keptLearned
		err := json.Unmarshal(state.Data, &kept)
		switch {
		case err == nil && kept.Version != keptVersion:
			err = fmt.Errorf("it has the version %d, want %d", kept.Version, keptVersion)
		case err == nil:
			err = fleet.Recall(now, kept.PoolLearned, max(0, state.Age))
		}
		if err == nil {
			recalled = append(recalled, autoscale.Recalled{At: now, Age: max(0, state.Age),
				PoolLearned: kept.PoolLearned})
		} else {
			m.log.InfoContext(ctx, "what was learned for scaling a pool is not used; it is "+
				"measured anew", "pool", state.Pool, "reason", err)
		}
	}
	m.loaded = true
	return recalled, nil
}

// save publishes the snapshot if it has changed, and keeps what was learned from time to time.
func (m *memory) save(
	ctx context.Context, now time.Time, fleet *autoscale.Fleet, s *autoscale.Snapshot,
) error {
	var states []store.LearnedState
	if now.Sub(m.learnedAt) >= keepLearnedEvery {
		for _, learned := range fleet.Learned(now) {
			data, err := json.Marshal(keptLearned{keptVersion, learned})
			if err != nil {
				return err
			}
			states = append(states, store.LearnedState{Pool: learned.Pool, Kind: learnedKind,
				Data: data})
		}
	}
	if len(states) > 0 {
		if err := m.dispatcher.SaveStates(ctx, states); err != nil {
			return err
		}
		m.learnedAt = now
	}
	if now.Sub(m.snapshotAt) < keepSnapshotEvery && sameDecision(m.lastSnapshot, s) {
		return nil
	}
	data, err := json.Marshal(keptSnapshot{keptVersion, *s})
	if err != nil {
		return err
	}
	if err := m.snapshots.Publish(ctx, snapshotKind, live.Snapshot{Data: data}); err != nil {
		return err
	}
	m.lastSnapshot, m.snapshotAt = s, now
	return nil
}

// sameDecision reports whether two snapshots have the same numbers of replicas.
func sameDecision(a, b *autoscale.Snapshot) bool {
	if a == nil || len(a.Pools) != len(b.Pools) {
		return false
	}
	for i, p := range a.Pools {
		q := b.Pools[i]
		p.Terms, q.Terms = autoscale.Terms{}, autoscale.Terms{}
		p.InFlight, q.InFlight, p.Lines, q.Lines = 0, 0, 0, 0
		if !reflect.DeepEqual(p, q) || a.Pools[i].Active() != b.Pools[i].Active() {
			return false
		}
	}
	return true
}

// follow publishes the snapshot that the process that decides has kept.
func (d *Driver) follow(ctx context.Context) error {
	snapshots, err := d.deps.Snapshots.Snapshots(ctx, snapshotKind)
	if err != nil {
		return fmt.Errorf("read what was decided: %w", err)
	}
	for _, s := range snapshots {
		var kept keptSnapshot
		if err := json.Unmarshal(s.Data, &kept); err != nil {
			return fmt.Errorf("read what was decided: %w", err)
		}
		if kept.Version == keptVersion {
			// Its time by the clock of this process: those of two machines differ.
			kept.At = time.Now().Add(-s.Age)
			d.published.set(&kept.Snapshot)
			return nil
		}
	}
	return ErrUnknown
}
