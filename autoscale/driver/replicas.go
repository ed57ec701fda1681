package driver

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tidefill/tidefill/autoscale"
)

// Replica is a replica and the names of its runners.
type Replica struct {
	autoscale.Replica
	Runners []string
}

// Replicas lists which replicas the pools have, and influences which of them are removed.
type Replicas interface {
	// Knows reports whether it lists the replicas of a pool.
	Knows(pool string) bool
	// Replicas lists the replicas of a pool by the name of their runner. An error: they are not
	// known, and nothing is decided for the pool.
	Replicas(pool string) ([]Replica, error)
	// Order returns the order in which the replicas of a pool end, the first one first, if whatever
	// removes them has an order of its own. Nil: Remove chooses.
	Order(pool string) func(a, b string) int
	// Remove has those replicas of a pool removed first that are named, the last one first.
	Remove(ctx context.Context, pool string, replicas []string) error
}

// leaving tracks the replicas of a pool that shall go: they get no new lines, and end when those in
// flight have ended. Until then they count as draining, so that the number that is reported falls
// only when a replica has no work left to lose.
type leaving struct {
	limit time.Duration         // for lines in flight
	order func(a, b string) int // in which replicas end; nil: any
	since map[string]time.Time
}

func newLeaving(limit time.Duration) *leaving {
	return &leaving{limit: limit, since: map[string]time.Time{}}
}

// apply returns the replicas as scaling sees them: those that shall go are draining while they have
// lines in flight, and are left out once they have none.
func (l *leaving) apply(
	now time.Time, all []Replica, inFlight func(runners []string) int,
) []autoscale.Replica {
	seen := map[string]bool{}
	kept := make([]autoscale.Replica, 0, len(all))
	for _, r := range all {
		seen[r.ID] = true
		if since, leaves := l.since[r.ID]; leaves {
			if inFlight(r.Runners) == 0 || now.Sub(since) >= l.limit {
				continue
			}
			r.Phase, r.Since = autoscale.Draining, since
		}
		kept = append(kept, r.Replica)
	}
	for id := range l.since {
		if !seen[id] {
			delete(l.since, id)
		}
	}
	return kept
}

// choose returns as many of a pool's replicas as are to go: those that were chosen, or those that
// end first.
func (l *leaving) choose(all []autoscale.Replica, chosen []string) []string {
	if l.order == nil || len(chosen) == 0 {
		return chosen
	}
	var ids []string
	for _, r := range all {
		if r.Phase != autoscale.Draining {
			ids = append(ids, r.ID)
		}
	}
	slices.SortFunc(ids, l.order)
	return ids[:min(len(chosen), len(ids))]
}

// drain notes replicas that shall go from now on.
func (l *leaving) drain(now time.Time, ids []string) {
	for _, id := range ids {
		if _, known := l.since[id]; !known {
			l.since[id] = now
		}
	}
}

// reopen keeps as many of the replicas that shall go as are wanted again, those that were the last
// to be closed first: whatever starts replicas counts them as existing, and would start no others.
func (l *leaving) reopen(n int) {
	for ; n > 0 && len(l.since) > 0; n-- {
		delete(l.since, l.ids()[0])
	}
}

// ids lists the replicas that shall go, the last one to be closed first.
func (l *leaving) ids() []string {
	ids := make([]string, 0, len(l.since))
	for id := range l.since {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		if c := l.since[b].Compare(l.since[a]); c != 0 {
			return c
		}
		if l.order != nil {
			return l.order(b, a)
		}
		return cmp.Compare(a, b)
	})
	return ids
}
