package simulator

import (
	"slices"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// scheduleFaults schedules the scenario's faults.
func (sim *simulation) scheduleFaults() {
	for _, f := range sim.setup.Scenario.EachFault() {
		sim.queue.add(epoch.Add(f.At), func() {
			if f.Kind == scenario.Restart && sim.dispatcher != nil {
				sim.dispatcher.restart(f)
				return
			}
			for _, r := range sim.faultTargets(f) {
				r.applyFault(f)
			}
		})
	}
}

// faultTargets returns the existing replicas that a fault applies to.
func (sim *simulation) faultTargets(f scenario.Fault) []*replica {
	x := sim.pool(f.Pool)
	if len(f.Replicas) == 0 {
		return x.replicas
	}
	var struck []*replica
	for _, number := range f.Replicas {
		if r := x.byNumber(number); r != nil {
			struck = append(struck, r)
		}
	}
	return struck
}

// applyFault lets a fault happen to the replica.
func (r *replica) applyFault(f scenario.Fault) {
	sim := r.sim
	switch f.Kind {
	case scenario.Crash:
		r.crash(f.Lost)
		if f.For > 0 {
			again := r.pool.restart(r.number)
			sim.queue.add(sim.now.Add(f.For), func() {
				if again.phase == starting {
					again.serve()
				}
			})
		}
	case scenario.Slow:
		r.slow(f)
	case scenario.Stall:
		r.advance()
		r.engine.Stall(sim.now, f.For)
		r.advance()
	case scenario.Shed:
		if until := sim.now.Add(f.For); until.After(r.shedUntil) {
			r.shedUntil = until
		}
	case scenario.Fail, scenario.Deny, scenario.Garble:
		r.wrong, r.wrongUntil = f.Kind, sim.now.Add(f.For)
	case scenario.Flush:
		r.advance()
		r.engine.FlushCache(sim.now)
		r.advance()
	case scenario.Restart: // of the daemon
	}
}

// wrongAnswer returns how a line ends on the replica now if its answer is wrong; nil: it is not.
func (r *replica) wrongAnswer() *plan.Finished {
	if !r.sim.now.Before(r.wrongUntil) {
		return nil
	}
	switch r.wrong {
	case scenario.Fail:
		return &plan.Finished{Outcome: plan.Failed, Status: 500}
	case scenario.Deny:
		return &plan.Finished{Outcome: plan.Denied, Status: 401}
	default:
		return &plan.Finished{Outcome: plan.Garbled, Status: 200}
	}
}

// slow makes the replica slow for the time of a fault. Of overlapping faults the last one to begin
// applies until it ends, then the one before.
func (r *replica) slow(f scenario.Fault) {
	began := &f
	r.slowed = append(r.slowed, began)
	r.setPace(f.Factor)
	r.sim.queue.add(r.sim.now.Add(f.For), func() {
		r.slowed = slices.DeleteFunc(r.slowed, func(f *scenario.Fault) bool { return f == began })
		pace := 1.0
		if n := len(r.slowed); n > 0 {
			pace = r.slowed[n-1].Factor
		}
		r.setPace(pace)
	})
}

// setPace makes iterations take factor times as long.
func (r *replica) setPace(factor float64) {
	if r.phase == ended {
		return
	}
	r.advance()
	r.engine.SetPace(r.sim.now, factor)
	r.advance()
}
