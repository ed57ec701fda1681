package plan

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// runnerStop sets or ends a stop of a runner. Flow control does not learn of it: the runner is what
// it was when the stop ends.
func (p *Planner) runnerStop(now time.Time, ev RunnerStop) {
	r := p.runners[ev.Runner]
	if r == nil {
		return
	}
	r.stop, r.stopUntil = ev.Reason, ev.Until
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

// pauseGateway pauses all runners behind the gateway of a runner that has asked for a pause: their
// lines go to the same address. Flow control does not learn of it, because the others have refused
// nothing.
func (p *Planner) pauseGateway(now time.Time, by *runner) {
	if by.gateway == "" || !by.heldUntil.After(now) {
		return
	}
	for _, r := range by.pool.runners {
		if r.gateway == by.gateway {
			p.pause(r, by.heldUntil)
		}
	}
}

// joinPause has a runner that comes wait as long as those behind the same gateway.
func (p *Planner) joinPause(r *runner) {
	for _, x := range r.pool.runners {
		if r.gateway != "" && x.gateway == r.gateway {
			p.pause(r, x.pausedUntil)
		}
	}
}

func (p *Planner) pause(r *runner, until time.Time) {
	if until.After(r.pausedUntil) {
		r.pausedUntil = until
		p.timers.set(timer{at: until, runner: r})
	}
}

// endPause ends a pause of the gateway whose time is over.
func (r *runner) endPause(now time.Time) {
	if !r.pausedUntil.After(now) {
		r.pausedUntil = time.Time{}
	}
}

// status returns the state of the runner.
func (r *runner) status() RunnerStatus {
	s := RunnerStatus{ID: r.id, InFlight: r.inFlight, Limit: r.granted.Lines,
		Open: r.breaker.open, Failed: r.failed, Draining: r.draining,
		Prefilling: r.lines.prefilling, Prompt: r.granted.Prompt,
		Evict: r.granted.Evict, Granted: r.granted.Reason}
	if bad, of := r.answers.counts(); bad > 0 {
		s.Bad, s.Judged = bad, of
	}
	if s.Open {
		s.Since, s.Trial, s.Failing = r.breaker.since, r.breaker.until, r.failing()
	}
	if s.Failing {
		s.Failed = r.answers.last
	}
	switch {
	case s.Failing:
		s.Limit, s.Granted = 0, flowcontrol.Reason(Failing)
	case r.draining:
		s.Limit, s.Granted = 0, flowcontrol.Reason(Draining)
	case r.stop != Flowing:
		s.Limit, s.Granted = 0, flowcontrol.Reason(r.stop)
	case !r.pausedUntil.IsZero():
		s.Limit, s.Granted = 0, flowcontrol.ReasonRetryAfter
	}
	return s
}
