package plan

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// runnerState sets or ends a stop of a runner. Flow control does not learn of it: the runner is
// what it was when the stop ends.
func (p *Planner) runnerState(now time.Time, ev RunnerState) {
	r := p.runners[ev.Runner]
	if r == nil {
		return
	}
	r.stop, r.stopUntil = ev.Stop, ev.Until
	if r.endStop(now); r.stop != Flowing {
		p.timers.set(timer{at: r.stopUntil, runner: r})
	}
}

// endStop ends a stop whose time is over: what a runner said long ago says nothing about it now.
func (r *runner) endStop(now time.Time) {
	if !r.stopUntil.After(now) {
		r.stop, r.stopUntil = Flowing, time.Time{}
	}
}

// status returns the state of the runner.
func (r *runner) status() RunnerStatus {
	s := RunnerStatus{ID: r.id, InFlight: r.inFlight, Limit: r.granted.Lines,
		Open: r.breaker.open, Draining: r.draining,
		Prefilling: r.lines.prefilling, Prompt: r.granted.Prompt,
		Evict: r.granted.Evict, Granted: r.granted.Reason}
	switch {
	case r.draining:
		s.Limit, s.Granted = 0, flowcontrol.Reason(Draining)
	case r.stop != Flowing:
		s.Limit, s.Granted = 0, flowcontrol.Reason(r.stop)
	}
	return s
}
