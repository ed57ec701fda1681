package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/portable"
)

// knowledge says how well a runner is known.
//
//	     something is heard            silence of AgingAfter        silence of StaleAfter
//	FRESH ◄──────────────── any   FRESH ──────────────────► AGING ──────────────────► STALE
//	any ── BrokenLines lines broken in a row ──► UNREACHABLE
type knowledge uint8

// The states, the best first.
const (
	fresh       knowledge = iota + 1
	aging                 // the lines no longer grow
	stale                 // they shrink to a small share
	unreachable           // one line every now and then
)

// staleness bounds a runner's lines while nothing is heard of it. It shrinks the bound slowly and
// raises it slowly afterwards.
type staleness struct {
	state   knowledge
	heard   time.Time // of the runner, for the last time
	broken  int       // lines in a row
	retry   time.Time // when an unreachable runner may be tried
	ceiling float64   // lines at most; infinite once fresh has lasted
	good    float64   // lines when the state was last fresh
	samples int       // heard since the state is fresh again
}

// recovered is how many times something must be heard before the ceiling rises.
const recovered = 3

func newStaleness(now time.Time) staleness {
	return staleness{state: fresh, heard: now, ceiling: math.Inf(1)}
}

// hear notes a sign of life that dates from a time.
func (s *staleness) hear(at time.Time) {
	if at.After(s.heard) {
		s.heard = at
	}
	s.broken = 0
	s.samples++
}

// lineBroke notes a line without an answer.
func (s *staleness) lineBroke(now time.Time, cfg Staleness) {
	s.broken++
	if s.broken >= cfg.BrokenLines {
		s.retry = now.Add(cfg.Retry)
	}
}

// pass lets dt pass. lines is what the feedback would grant.
func (s *staleness) pass(now time.Time, dt time.Duration, lines float64, cfg Staleness) {
	was := s.state
	switch age := now.Sub(s.heard); {
	case s.broken >= cfg.BrokenLines:
		s.state = unreachable
	case age > cfg.StaleAfter:
		s.state = stale
	case age > cfg.AgingAfter:
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
		s.ceiling = max(1, s.ceiling) * (1 + portable.Rounded(cfg.Recovery*dt.Seconds()))
		if s.ceiling >= lines {
			s.ceiling = math.Inf(1)
		}
	}
}

// bound returns how many lines are left, and the reason if that is fewer than otherwise.
func (s *staleness) bound(now time.Time) (lines float64, reason flowcontrol.Reason) {
	switch s.state {
	case unreachable:
		if now.Before(s.retry) {
			return 0, ReasonUnreachable
		}
		return 1, ReasonUnreachable
	case stale:
		return s.ceiling, ReasonStale
	}
	return s.ceiling, ReasonAging
}
