package simulator

import "github.com/tidefill/tidefill/simulator/scenario"

// strike puts the scenario's faults on the agenda.
func (sim *simulation) scheduleFaults() {
	for _, f := range sim.setup.Scenario.Faults {
		sim.queue.add(epoch.Add(f.At), func() {
			for _, r := range sim.faultTargets(f) {
				r.applyFault(f)
			}
		})
	}
}

// struck are the replicas that a fault is about and that are there.
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
		r.setPace(f.Factor)
		sim.queue.add(sim.now.Add(f.For), func() { r.setPace(1) })
	case scenario.Stall:
		r.advance()
		r.engine.Stall(sim.now, f.For)
		r.advance()
	case scenario.Flush:
		r.advance()
		r.engine.FlushCache(sim.now)
		r.advance()
	}
}

// pace makes iterations take a multiple of their time.
func (r *replica) setPace(factor float64) {
	if r.phase == ended {
		return
	}
	r.advance()
	r.engine.SetPace(r.sim.now, factor)
	r.advance()
}
