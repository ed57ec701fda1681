package flowcontroltest

import (
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Mistake makes a controller wrong in one way. Tests wrap controllers in mistakes to show that
// reports and checks detect them.
type Mistake func(flowcontrol.Controller) flowcontrol.Controller

// wrapped passes everything on to a controller. It explains what the controller explains, and warns
// of what the controller warns of.
type wrapped struct{ flowcontrol.Controller }

func (w wrapped) Explain(now time.Time) []flowcontrol.Term {
	if e, ok := w.Controller.(flowcontrol.Explainer); ok {
		return e.Explain(now)
	}
	return nil
}

func (w wrapped) Warnings(now time.Time) []flowcontrol.Warning {
	if warner, ok := w.Controller.(flowcontrol.Warner); ok {
		return warner.Warnings(now)
	}
	return nil
}

// SignFlipped returns the mistake that long iterations bring more lines: an iteration that is
// longer than target is reported as that much shorter, and the other way round.
func SignFlipped(target time.Duration) Mistake {
	return func(c flowcontrol.Controller) flowcontrol.Controller {
		return signFlipped{wrapped{c}, target}
	}
}

type signFlipped struct {
	wrapped
	target time.Duration
}

func (c signFlipped) Observe(now time.Time, o flowcontrol.Observation) bool {
	if gaps, ok := o.(*flowcontrol.TokenGaps); ok && gaps.Gaps > 0 {
		flipped, n := *gaps, time.Duration(gaps.Gaps)
		flipped.Time = max(2*c.target-gaps.Time/n, time.Millisecond) * n
		o = &flipped
	}
	return c.Controller.Observe(now, o)
}

// StalenessIgnored is the mistake to assume that a runner is as it was when last observed. It
// changes a counter in readings that repeat each other, and repeats token gaps and readings when
// there are no new ones.
func StalenessIgnored(c flowcontrol.Controller) flowcontrol.Controller {
	return &stalenessIgnored{wrapped: wrapped{c}, gaps: map[string]flowcontrol.TokenGaps{},
		readings: map[string]*flowcontrol.Reading{}, seen: map[string]time.Time{}}
}

type stalenessIgnored struct {
	wrapped
	gaps     map[string]flowcontrol.TokenGaps // the last ones, by runner
	readings map[string]*flowcontrol.Reading  // the last ones of metrics, by runner
	seen     map[string]time.Time             // last observation, by runner
	extra    float64                          // output tokens that make readings change
}

func (c *stalenessIgnored) Observe(now time.Time, o flowcontrol.Observation) bool {
	c.seen[o.About()] = now
	switch o := o.(type) {
	case *flowcontrol.TokenGaps:
		c.gaps[o.Runner] = *o
	case *flowcontrol.Read:
		if o.Runner != "" && o.Reading.Source == flowcontrol.Metrics {
			return c.read(now, o.Runner, o.Reading)
		}
	case *flowcontrol.RunnerLeft:
		delete(c.gaps, o.Runner)
		delete(c.readings, o.Runner)
	}
	return c.Controller.Observe(now, o)
}

// read reports a reading of a runner that seems to be alive.
func (c *stalenessIgnored) read(
	now time.Time, runner string, r *flowcontrol.Reading,
) (changed bool) {
	alive := c.alive(*r, now)
	c.readings[runner] = alive
	return c.Controller.Observe(now, &flowcontrol.Read{Runner: runner, Reading: alive})
}

// alive returns the reading with the time now and a counter that has grown, so that its source
// seems to be alive.
func (c *stalenessIgnored) alive(r flowcontrol.Reading, now time.Time) *flowcontrol.Reading {
	c.extra++
	r.Sampled = now
	r.OutputTokens += c.extra
	return &r
}

func (c *stalenessIgnored) Allowance(now time.Time) flowcontrol.Allowance {
	for runner, gaps := range c.gaps {
		if now.Sub(c.seen[runner]) >= time.Second {
			c.Controller.Observe(now, &gaps)
		}
	}
	for runner, r := range c.readings {
		if now.Sub(c.seen[runner]) >= time.Second {
			c.Controller.Observe(now, &flowcontrol.Read{Runner: runner, Reading: c.alive(*r, now)})
		}
	}
	return c.Controller.Allowance(now)
}

// DeadlinesAboveSafety is the mistake that deadlines raise the allowance above what is safe.
func DeadlinesAboveSafety(c flowcontrol.Controller) flowcontrol.Controller {
	return &deadlinesAboveSafety{wrapped: wrapped{c}}
}

type deadlinesAboveSafety struct {
	wrapped
	pressed float64
}

func (c *deadlinesAboveSafety) Observe(now time.Time, o flowcontrol.Observation) bool {
	changed := c.Controller.Observe(now, o)
	if demand, ok := o.(*flowcontrol.DeadlineDemand); ok && demand.Lines != c.pressed {
		c.pressed, changed = demand.Lines, true
	}
	return changed
}

func (c *deadlinesAboveSafety) Allowance(now time.Time) flowcontrol.Allowance {
	a := c.Controller.Allowance(now)
	a.Runners = slices.Clone(a.Runners)
	for i := range a.Runners {
		r := &a.Runners[i]
		r.Lines = max(r.Lines, int(c.pressed/float64(len(a.Runners))))
	}
	return a
}

// OwnLoadAsInteractive is the mistake that batch lines count as interactive requests.
func OwnLoadAsInteractive(c flowcontrol.Controller) flowcontrol.Controller {
	return &ownLoadAsInteractive{wrapped{c}, map[string]int{}}
}

type ownLoadAsInteractive struct {
	wrapped
	carried map[string]int // lines by runner
}

func (c *ownLoadAsInteractive) Observe(now time.Time, o flowcontrol.Observation) bool {
	switch of := o.(type) {
	case interface{ Carried() flowcontrol.Load }:
		c.carried[o.About()] = of.Carried().InFlight
	case *flowcontrol.RunnerLeft:
		delete(c.carried, of.Runner)
	case *flowcontrol.Read:
		if of.Reading.Source == flowcontrol.Metrics {
			r := *of.Reading // the controller subtracts its lines once
			r.Running += float64(c.carried[of.Runner])
			o = &flowcontrol.Read{Runner: of.Runner, Reading: &r}
		}
	}
	return c.Controller.Observe(now, o)
}

// LatenessHidden is the mistake that late requests change nothing.
func LatenessHidden(c flowcontrol.Controller) flowcontrol.Controller {
	return latenessHidden{wrapped{c}}
}

type latenessHidden struct{ wrapped }

func (c latenessHidden) Observe(now time.Time, o flowcontrol.Observation) bool {
	if read, ok := o.(*flowcontrol.Read); ok && read.Runner == "" {
		return false
	}
	return c.Controller.Observe(now, o)
}
