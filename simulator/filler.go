package simulator

import (
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// FillerFor returns a replica's filler: batch work that the engine itself fits in, for comparison
// with the policies. It is called once for each replica.
type FillerFor func(Host) engine.Filler

// Host is a replica that gets a filler.
type Host struct {
	Replica string
	Engine  engine.Config
	// Objective returns the SLO of the user of a request in the engine.
	Objective func(engine.ID) scenario.SLO
}

// RunWithFiller simulates the scenario with fillers instead of a policy and returns how the
// interactive requests fared.
func RunWithFiller(s Setup, work FillerFor, progress Progress) (Interactive, error) {
	if err := s.Check(); err != nil {
		return Interactive{}, err
	}
	s.newFiller = work
	sim, _, err := simulate(s, false, progress)
	if err != nil {
		return Interactive{}, err
	}
	return sim.interactive.report(), nil
}

// installFiller puts the filler into an engine, if there is one.
func (sim *simulation) installFiller(name string, cfg engine.Config, e *engine.Engine) {
	if sim.setup.newFiller == nil {
		return
	}
	e.SetFiller(sim.setup.newFiller(Host{Replica: name, Engine: cfg,
		Objective: func(id engine.ID) scenario.SLO {
			return sim.interactive.classes[sim.requests[id].class].slo
		}}))
}

// scheduleFillers wakes idle engines when a job arrives.
func (sim *simulation) scheduleFillers() error {
	jobs, err := sim.setup.Jobs()
	if err != nil {
		return err
	}
	for {
		j, ok := jobs.Next()
		if !ok {
			return nil
		}
		sim.queue.add(epoch.Add(j.At), func() {
			for _, x := range sim.pools {
				for _, r := range x.replicas {
					r.wakeFiller()
				}
			}
		})
	}
}

// wakeFiller lets the engine look for work, if it is ready.
func (r *replica) wakeFiller() {
	if r.phase == ready {
		r.advance()
	}
}
