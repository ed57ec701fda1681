package autoscale

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// highest remembers the highest number wanted within a time.
type highest []wish

type wish struct {
	at       time.Time
	replicas int
}

// of takes a number and gives the highest of those not older than hold.
func (h *highest) of(now time.Time, wanted int, hold time.Duration) int {
	*h = append(slices.DeleteFunc(*h, func(w wish) bool {
		return now.Sub(w.at) > hold || w.replicas <= wanted
	}), wish{now, wanted})
	return (*h)[0].replicas // what is lower and older has gone, so the first is the highest
}

// settle lets a pool grow at once and shrink slowly.
type settle struct {
	begun  time.Time
	wishes highest
	cut    time.Time // when it last shrank
}

// to is the number to have when so many are wanted and so many exist: no fewer than were wanted at
// any moment of hold, and no more than a share of them, at least one, fewer a minute.
func (s *settle) to(now time.Time, wanted, exist int, hold time.Duration, share float64) int {
	if s.begun.IsZero() {
		s.begun = now
	}
	most := s.wishes.of(now, wanted, hold)
	switch {
	case wanted >= exist:
		return wanted
	case most >= exist, now.Sub(s.begun) < hold, !s.cut.IsZero() && now.Sub(s.cut) < time.Minute:
		return exist
	}
	s.cut = now
	return max(most, exist-max(1, int(math.Ceil(share*float64(exist)))))
}

// exist counts the replicas that are not on their way out.
func exist(p *Pool) int {
	n := 0
	for _, r := range p.Replicas {
		if r.Phase != Draining {
			n++
		}
	}
	return n
}

// shown adds those that still drain.
func shown(p *Pool, replicas int) int { return replicas + len(p.Replicas) - exist(p) }

// leaving chooses which replicas go: those that are not ready yet, the youngest first, then those
// where the least is lost, the youngest of them.
func leaving(p *Pool, replicas int) []string {
	var rest []Replica
	for _, r := range p.Replicas {
		if r.Phase != Draining {
			rest = append(rest, r)
		}
	}
	slices.SortFunc(rest, func(a, b Replica) int {
		return cmp.Or(cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.Progress, b.Progress),
			b.Since.Compare(a.Since), cmp.Compare(a.ID, b.ID))
	})
	var ids []string
	for _, r := range rest[:max(0, len(rest)-replicas)] {
		ids = append(ids, r.ID)
	}
	return ids
}
