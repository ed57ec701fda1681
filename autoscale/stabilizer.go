package autoscale

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// recentHighest remembers the numbers wanted within a time, as far as they can become the highest.
type recentHighest []wantedAt

type wantedAt struct {
	at       time.Time
	replicas int
}

// add adds a number and returns the highest of those that are not older than hold.
func (h *recentHighest) add(now time.Time, wanted int, hold time.Duration) int {
	*h = append(slices.DeleteFunc(*h, func(w wantedAt) bool {
		return now.Sub(w.at) > hold || w.replicas <= wanted
	}), wantedAt{now, wanted})
	return (*h)[0].replicas // older and lower ones were deleted, so the first is the highest
}

// stabilizer lets a pool grow at once and shrink slowly.
type stabilizer struct {
	begun   time.Time
	wanted  recentHighest
	reduced time.Time // when the pool last shrank
}

// removal is how replicas are removed: when fewer have sufficed for a time, and at most a share of
// those that exist, at least one, in a time.
type removal struct {
	hold  time.Duration
	share float64
	every time.Duration
}

// limit returns the number of replicas to have when a number is wanted and another exists.
func (s *stabilizer) limit(now time.Time, wanted, existing int, r removal) int {
	if s.begun.IsZero() {
		s.begun = now
	}
	highest := s.wanted.add(now, wanted, r.hold)
	switch {
	case wanted >= existing:
		return wanted
	case highest >= existing, now.Sub(s.begun) < r.hold,
		!s.reduced.IsZero() && now.Sub(s.reduced) < r.every && r.share < 1:
		return existing
	}
	s.reduced = now
	return max(highest, existing-max(1, int(math.Ceil(r.share*float64(existing)))))
}

// active counts the replicas that are not draining.
func active(p *PoolState) int {
	n := 0
	for _, r := range p.Replicas {
		if r.Phase != Draining {
			n++
		}
	}
	return n
}

// withDraining adds the number of draining replicas to a number.
func withDraining(p *PoolState, replicas int) int { return replicas + len(p.Replicas) - active(p) }

// toDrain chooses the replicas beyond a number: first those that are not ready, the youngest first,
// then those with the least progress, the youngest first.
func toDrain(p *PoolState, replicas int) []string {
	var all []Replica
	for _, r := range p.Replicas {
		if r.Phase != Draining {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Replica) int {
		return cmp.Or(cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.Progress, b.Progress),
			b.Since.Compare(a.Since), cmp.Compare(a.ID, b.ID))
	})
	var ids []string
	for _, r := range all[:max(0, len(all)-replicas)] {
		ids = append(ids, r.ID)
	}
	return ids
}
