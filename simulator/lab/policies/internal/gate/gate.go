// Package gate holds what the policies budget and saturation have in common: they open and close by
// the load of the pool, which is the mean over its runners as their metrics show it. Batch lines
// are part of that load: neither policy subtracts them.
package gate

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Reasons of policies that open and close by the load of the pool.
const (
	ReasonLoad      flowcontrol.Reason = "pool_load"  // the pool is too full for more to start
	ReasonNoMetrics flowcontrol.Reason = "no_metrics" // no recent reading shows the pool's load
)

// PromLookback is the age up to which a query of Prometheus returns a sample. The published gates
// query Prometheus.
const PromLookback = 5 * time.Minute

// AsyncWorkers is the number of requests that llm-d-async carries in a pool at once, by default.
const AsyncWorkers = 64

// Gate follows the load of a pool.
type Gate struct {
	// Refused says that a line was shed since the last reading was sampled, so that the load is
	// assumed to be higher than that reading says.
	Refused bool

	shedAt time.Time // when the last line was shed
	roster flowcontrol.Roster[load]
	maxAge time.Duration // a reading this old is not used any more
}

// load is that of a runner as its metrics showed it, or its capabilities if it has no metrics.
type load struct {
	known   bool
	source  flowcontrol.Source
	sampled time.Time // not after the time at which it was observed
	level   float64   // 1: the runner is full
}

// New returns a gate that uses no reading of maxAge or older.
func New(maxAge time.Duration) Gate { return Gate{maxAge: maxAge} }

// Runners returns the number of runners of the pool.
func (g *Gate) Runners() int { return len(g.roster.Members) }

// Observe does what all gates do with an event. level returns the load in a reading, NaN if the
// reading does not show it.
func (g *Gate) Observe(
	now time.Time, o flowcontrol.Observation, level func(*flowcontrol.Reading) float64,
) (changed bool) {
	m, changed := g.roster.Observe(now, o, load{})
	if m == nil {
		return changed
	}
	switch o := o.(type) {
	case *flowcontrol.Shed:
		_, seen, _ := g.Mean(now)
		closes := seen && !g.Refused
		g.Refused, g.shedAt = g.Refused || seen, now
		return changed || closes
	case *flowcontrol.Read:
		l := level(o.Reading)
		if math.IsNaN(l) || !m.State.yields(now, o.Reading, g.maxAge) {
			return changed
		}
		m.State = load{known: true, source: o.Reading.Source, sampled: o.Reading.Sampled, level: l}
		if now.Before(m.State.sampled) { // a clock that is ahead, and may be set back
			m.State.sampled = now
		}
		g.Refused = g.Refused && !o.Reading.Sampled.After(g.shedAt)
		return true
	}
	return changed
}

// yields reports whether a reading replaces the load. Capabilities say less than metrics, and do
// not replace them before they are maxAge old.
func (l *load) yields(now time.Time, r *flowcontrol.Reading, maxAge time.Duration) bool {
	switch {
	case !l.known || !now.Before(l.sampled.Add(maxAge)):
		return true
	case r.Source == l.source:
		return !r.Sampled.Before(l.sampled)
	}
	return r.Source == flowcontrol.Metrics
}

// Mean returns the load of the pool, over the runners whose load is known, and when the first of
// their readings will be too old; seen is false if no load is known.
func (g *Gate) Mean(now time.Time) (level float64, seen bool, until time.Time) {
	fresh := 0
	for _, m := range g.roster.Members {
		end := m.State.sampled.Add(g.maxAge)
		if !m.State.known || !now.Before(end) {
			continue
		}
		fresh++
		level += m.State.level
		if until.IsZero() || end.Before(until) {
			until = end
		}
	}
	if fresh == 0 {
		return 0, false, time.Time{}
	}
	return level / float64(fresh), true, until
}

// Grant gives each runner lines, the pool no more than perPool (0: no limit), for the reason, until
// the load is too old at the latest.
func (g *Gate) Grant(
	now time.Time, lines, perPool int, reason flowcontrol.Reason, until time.Time,
) flowcontrol.Allowance {
	g.roster.PerPool = perPool
	a := g.roster.Allowance(now, func(*flowcontrol.Member[load]) (int, flowcontrol.Reason) {
		return lines, reason
	})
	if !until.IsZero() && (a.Until.IsZero() || until.Before(a.Until)) {
		a.Until = until
	}
	return a
}
