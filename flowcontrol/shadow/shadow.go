// Package shadow runs a flow-control policy beside that of a pool, on the same observations. What
// it would allow is compared with what is allowed, and changes nothing.
//
// A shadow observes the lines that the pool's policy starts, not those that it would start itself.
// So it shows what a policy makes of a moment, and not where it would lead the pool: one that
// allows more never sees the load that this would bring, and one that allows less sees a load that
// it would have avoided.
package shadow

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Shadow is a controller whose allowance is only looked at. The nil Shadow does nothing.
type Shadow struct {
	controller flowcontrol.Controller

	lines   int // of the last allowance
	reason  flowcontrol.Reason
	until   time.Time // of it
	stale   bool      // the allowance may have changed
	changed time.Time // when it became stale
}

// New returns the shadow that the configuration of a pool has; nil: it has none.
func New(cfg flowcontrol.Config) (*Shadow, error) {
	own, ok := cfg.ForShadow()
	if !ok {
		return nil, nil
	}
	c, err := flowcontrol.New(own)
	if err != nil {
		return nil, err
	}
	return &Shadow{controller: c, stale: true}, nil
}

// Observe passes on what the pool's policy observes. A pool asks its policy for the allowance once
// it has changed. So does the shadow, but once for all that happens at the same time.
func (s *Shadow) Observe(now time.Time, o flowcontrol.Observation) {
	if s == nil {
		return
	}
	if s.stale && now.After(s.changed) || s.ended(now) {
		s.refresh(now)
	}
	if s.controller.Observe(now, o) && !s.stale {
		s.stale, s.changed = true, now
	}
}

// Allowance is what a shadow would allow a pool.
type Allowance struct {
	Policy string
	// Lines is the number of lines that the pool might have in flight.
	Lines  int
	Reason flowcontrol.Reason
}

// Allowance returns what the shadow would allow now; ok is false if there is no shadow.
func (s *Shadow) Allowance(now time.Time) (a Allowance, ok bool) {
	if s == nil {
		return Allowance{}, false
	}
	if s.stale || s.ended(now) {
		s.refresh(now)
	}
	return Allowance{s.controller.Name(), s.lines, s.reason}, true
}

func (s *Shadow) ended(now time.Time) bool { return !s.until.IsZero() && !s.until.After(now) }

func (s *Shadow) refresh(now time.Time) {
	a := s.controller.Allowance(now)
	s.lines = 0
	for _, r := range a.Runners {
		s.lines += r.Lines
	}
	s.lines = min(s.lines, a.Pool)
	s.reason, s.until, s.stale = a.Reason, a.Until, false
}
