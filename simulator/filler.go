package simulator

import (
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// Inside is batch work that the engines themselves fit in, for comparison: no
// policy of ours takes part. It is asked for each replica's filler once.
type FillerFor func(Host) engine.Filler

// Host is a replica that is to be filled.
type Host struct {
	Replica string
	Engine  engine.Config
	// Promise is what the user of a request inside was promised.
	Objective func(engine.ID) scenario.SLO
}

// RunInside tells the scenario with such work and says what the users got.
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

// fill puts the filler into an engine, if there is one.
func (sim *simulation) installFiller(name string, cfg engine.Config, e *engine.Engine) {
	if sim.setup.newFiller == nil {
		return
	}
	e.FillWith(sim.setup.newFiller(Host{Replica: name, Engine: cfg,
		Objective: func(id engine.ID) scenario.SLO {
			return sim.interactive.classes[sim.requests[id].class].slo
		}}))
}

// wakeInside lets engines that rest look for work when a job comes.
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

// wakeInside lets the engine look for work, once it serves.
func (r *replica) wakeFiller() {
	if r.phase == ready {
		r.advance()
	}
}
