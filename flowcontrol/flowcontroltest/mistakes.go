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
	if o.Kind == flowcontrol.TokenGaps && o.Gaps > 0 {
		gap := o.GapTime / time.Duration(o.Gaps)
		o.GapTime = max(2*c.target-gap, time.Millisecond) * time.Duration(o.Gaps)
	}
	return c.Controller.Observe(now, o)
}

// StalenessIgnored is the mistake to assume that a runner is as it was when last observed. It
// changes a counter in readings that repeat each other, and repeats token gaps and readings when
// there are no new ones.
func StalenessIgnored(c flowcontrol.Controller) flowcontrol.Controller {
	return &stalenessIgnored{wrapped: wrapped{c}, gaps: map[string]flowcontrol.Observation{},
		readings: map[string]flowcontrol.Observation{}, seen: map[string]time.Time{}}
}

type stalenessIgnored struct {
	wrapped
	gaps, readings map[string]flowcontrol.Observation // the last ones, by runner
	seen           map[string]time.Time               // last observation, by runner
	extra          float64                            // output tokens that make readings change
}

func (c *stalenessIgnored) Observe(now time.Time, o flowcontrol.Observation) bool {
	switch o.Kind {
	case flowcontrol.TokenGaps:
		c.gaps[o.Runner] = o
	case flowcontrol.Read:
		if o.Runner != "" && o.Reading.Source == flowcontrol.Metrics {
			o.Reading = c.alive(*o.Reading, now)
			c.readings[o.Runner] = o
		}
	case flowcontrol.RunnerLeft:
		delete(c.gaps, o.Runner)
		delete(c.readings, o.Runner)
	}
	c.seen[o.Runner] = now
	return c.Controller.Observe(now, o)
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
	for _, last := range []map[string]flowcontrol.Observation{c.gaps, c.readings} {
		for runner, o := range last {
			if now.Sub(c.seen[runner]) < time.Second {
				continue
			}
			if o.Kind == flowcontrol.Read {
				o.Reading = c.alive(*o.Reading, now)
			}
			c.Controller.Observe(now, o)
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
	if o.Kind == flowcontrol.DeadlineDemand && o.Lines != c.pressed {
		c.pressed, changed = o.Lines, true
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
	if o.Kind != flowcontrol.Read {
		c.carried[o.Runner] = o.InFlight
	} else if o.Reading.Source == flowcontrol.Metrics {
		r := *o.Reading // the controller subtracts its lines once
		r.Running += float64(c.carried[o.Runner])
		o.Reading = &r
	}
	return c.Controller.Observe(now, o)
}

// LatenessHidden is the mistake that late requests change nothing.
func LatenessHidden(c flowcontrol.Controller) flowcontrol.Controller {
	return latenessHidden{wrapped{c}}
}

type latenessHidden struct{ wrapped }

func (c latenessHidden) Observe(now time.Time, o flowcontrol.Observation) bool {
	if o.Kind == flowcontrol.Read && o.Runner == "" {
		return false
	}
	return c.Controller.Observe(now, o)
}
