package flowcontrol

import (
	"math"
	"time"
)

// Reasons of controllers that open and close by the load that metrics show.
const (
	ReasonLoad      Reason = "pool_load"  // the pool is as full as it may be for more to start
	ReasonNoMetrics Reason = "no_metrics" // nobody has seen the pool's load lately
)

// gate is what budget and saturation have in common: the load of the pool, which is the mean over
// its runners as their metrics show it. Our own lines are part of what they show: neither law tells
// them apart.
type gate struct {
	roster
	stale time.Duration // a reading this old shows nothing any more
	loads map[string]load
	// refused says that a line was shed since the load was last seen, so that it is believed to be
	// higher than that.
	refused bool
}

// load of a runner as its metrics showed it, 1 when it is full.
type load struct {
	sampled time.Time
	level   float64
}

func newGate(stale time.Duration) gate { return gate{stale: stale, loads: map[string]load{}} }

// observe does what all gates do with an event; level is the load in a reading, NaN where that does
// not show it.
func (g *gate) observe(now time.Time, o Observation, level func(*Reading) float64) (changed bool) {
	switch o.Kind {
	case RunnerJoined:
		return g.join(o.Runner, 0)
	case RunnerLeft:
		delete(g.loads, o.Runner)
		return g.leave(o.Runner)
	}
	m := g.find(o.Runner)
	if m == nil {
		return false
	}
	switch o.Kind {
	case Answered:
		m.sheds = 0
	case Shed:
		held := m.hold(now, o.RetryAfter)
		_, seen, _ := g.mean(now)
		closes := seen && !g.refused
		g.refused = g.refused || seen
		return held || closes
	case Read:
		if l := level(o.Reading); !math.IsNaN(l) {
			g.loads[o.Runner] = load{sampled: o.Reading.Sampled, level: l}
			g.refused = false
			return true
		}
	}
	return false
}

// mean is the load of the pool, over the runners whose load is known; until is when the first of
// these will be too old.
func (g *gate) mean(now time.Time) (level float64, seen bool, until time.Time) {
	fresh := 0
	for _, m := range g.members {
		l, ok := g.loads[m.id]
		end := l.sampled.Add(g.stale)
		if !ok || !now.Before(end) {
			continue
		}
		fresh++
		level += l.level
		if until.IsZero() || end.Before(until) {
			until = end
		}
	}
	if fresh == 0 {
		return 0, false, time.Time{}
	}
	return level / float64(fresh), true, until
}

// grant gives each runner lines, the pool no more than perPool, for the given reason, until the
// load is too old at the latest.
func (g *gate) grant(now time.Time, lines, perPool int, reason Reason, until time.Time) Allowance {
	for _, m := range g.members {
		m.limit = lines
	}
	g.perPool = perPool
	a := g.allowance(now, func(*member) Reason { return reason })
	if !until.IsZero() && (a.Until.IsZero() || until.Before(a.Until)) {
		a.Until = until
	}
	return a
}

// promLookback is how old a sample may be for a query of Prometheus to show it, which is where the
// published gates look.
const promLookback = 5 * time.Minute

// asyncWorkers is how many requests llm-d-async carries in a pool at once, by default.
const asyncWorkers = 64
