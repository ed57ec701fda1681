package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// knowledge is the state of the information on a runner.
//
//	     an observation           none for agingAfter        none for StaleAfter
//	FRESH ◄──────────────── any   FRESH ──────────────────► AGING ──────────────────► STALE
//	any ── BrokenLines lines broken in a row ──► UNREACHABLE
type knowledge uint8

// The states, from the most recent information to none.
const (
	fresh       knowledge = iota + 1
	aging                 // the number of lines no longer grows
	stale                 // the number of lines shrinks to a small share
	unreachable           // one trial line at a time, with pauses
)

// staleness limits a runner's lines while there are no observations of it. It lowers the limit
// slowly, and raises it slowly afterwards.
type staleness struct {
	state        knowledge
	lastObserved time.Time // time of the last observation
	broken       int       // number of consecutive lines without an answer
	retry        time.Time // when an unreachable runner may be tried
	ceiling      float64   // maximum number of lines; infinite after a time of state fresh
	good         float64   // number of lines when the state was last fresh
	samples      int       // number of observations since the state is fresh again
	// last is the time between the last two observations, and every the shorter one of that and
	// of the one before: a single long silence is not usual.
	last, every time.Duration
}

// recovered is the number of observations after which the ceiling rises.
const recovered = 3

func newStaleness(now time.Time) staleness {
	return staleness{state: fresh, lastObserved: now, ceiling: math.Inf(1)}
}

// observed records an observation of the runner that was made at the given time.
func (s *staleness) observed(at time.Time) {
	if gap := at.Sub(s.lastObserved); gap > 0 {
		s.every, s.last = min(gap, s.last), gap
		s.lastObserved = at
	}
	s.broken = 0
	s.samples++
}

// seenServed records that a gateway has shown users who were served. Where no metrics show a
// runner, only its answers do. A single long line is answered so rarely that the runner would count
// as stale, and keep that single line, though what lines do to users shows. Without an objective
// it shows less, and too late where users are few. A runner on which a line has broken is not taken
// to be among those that serve.
func (c *Controller) seenServed(at time.Time) {
	for _, m := range c.roster.Members {
		if r := m.State; r.interactive.seenAt.IsZero() && r.staleness.broken == 0 {
			r.staleness.observed(at)
		}
	}
}

// agingAfter returns the silence after which the state is aging. Where metrics come every half
// minute, as in many installations of Prometheus, that much silence says nothing.
func (s *staleness) agingAfter(cfg Staleness) time.Duration {
	return max(cfg.AgingAfter, min(2*s.every, cfg.StaleAfter))
}

// lineBroke records a line that ended without an answer.
func (s *staleness) lineBroke(now time.Time, cfg Staleness) {
	s.broken++
	if s.broken >= cfg.BrokenLines {
		s.retry = now.Add(cfg.Retry)
	}
}

// pass updates the limit after dt has passed. lines is what the feedback would grant.
func (s *staleness) pass(now time.Time, dt time.Duration, lines float64, cfg Staleness) {
	was := s.state
	switch age := now.Sub(s.lastObserved); {
	case s.broken >= cfg.BrokenLines:
		s.state = unreachable
	case age > cfg.StaleAfter:
		s.state = stale
	case age > s.agingAfter(cfg):
		s.state = aging
	default:
		s.state = fresh
	}
	if was == fresh && s.state != fresh {
		s.good, s.samples = min(lines, s.ceiling), 0
		s.ceiling = s.good
	}
	switch {
	case s.state == stale:
		s.ceiling = max(1, cfg.MinShare*s.good,
			s.ceiling*max(0, 1-0.7*float64(dt)/float64(cfg.HalfLife)))
	case s.state == fresh && s.samples >= recovered:
		s.ceiling = max(1, s.ceiling) * (1 + cfg.Recovery*dt.Seconds())
		if s.ceiling >= lines {
			s.ceiling = math.Inf(1)
		}
	}
}

// bound returns the maximum number of lines, and the reason to report if it limits them.
func (s *staleness) bound(now time.Time) (lines float64, reason flowcontrol.Reason) {
	switch s.state {
	case unreachable:
		if now.Before(s.retry) {
			return 0, ReasonUnreachable
		}
		return 1, ReasonUnreachable
	case stale:
		return s.ceiling, ReasonStale
	default:
		return s.ceiling, ReasonAging
	}
}
