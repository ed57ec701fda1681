package simulator

import (
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// dispatcher takes the place of the daemon's dispatcher: it feeds the planner the events of the
// jobs and does what the planner returns.
type dispatcher struct {
	sim       *simulation
	planner   *plan.Planner
	chunk     int // lines
	observers observers
	warnings  []PolicyWarning
	replicas  map[string]*replica
	jobs      []*job
	byName    map[string]*job
	wake      time.Time
	down      bool // it was killed and has not started again
	lives     int  // the number of times that it was killed
	saved     saved

	sheds, preemptions, evictions int
	wasted                        int64   // tokens computed for nothing
	work                          float64 // milliseconds of engine iterations
}

func (sim *simulation) newPlanner() (*plan.Planner, error) {
	policy := sim.setup.Policy
	policy.Plan.Inline = sim.setup.inlineConfig()
	return plan.New(policy.Plan, plan.Deps{Scheduler: policy.Scheduler,
		Flow: sim.setup.flowConfig(), Random: sim.setup.seed().Rand("planner")})
}

func newDispatcher(sim *simulation) (*dispatcher, error) {
	planner, err := sim.newPlanner()
	if err != nil {
		return nil, err
	}
	d := &dispatcher{sim: sim, planner: planner, chunk: max(1, sim.setup.Policy.ChunkLines),
		replicas: map[string]*replica{}, byName: map[string]*job{}}
	var outputs Outputs
	if sim.withBatch {
		outputs = sim.setup.Outputs
	}
	d.observers = newObservers(outputs, planner, d.chunk)
	jobs, err := sim.setup.Jobs()
	if err != nil {
		return nil, err
	}
	sim.queue.add(epoch, func() {
		for _, r := range sim.replicas {
			d.runnerUp(r)
		}
		d.scrapeGateway(sim.interactive.gateway)
		d.watchWarnings()
	})
	if sim.setup.Scenario.Restarts() {
		d.keepSaving()
	}
	for sim.withBatch {
		handed, ok := jobs.Next()
		if !ok {
			return d, nil
		}
		j := &job{Job: handed, attempts: map[int]*attempt{}}
		d.jobs = append(d.jobs, j)
		d.byName[j.Name] = j
		sim.queue.add(epoch.Add(j.At), func() { d.submit(j) })
	}
	return d, nil
}

// runnerUp notifies the planner of a replica that serves from now on.
func (d *dispatcher) runnerUp(r *replica) {
	if r.pool.closed || d.down {
		return
	}
	switch known := d.replicas[r.name]; {
	case known == r:
		return
	case known != nil: // lost, and restarted before its loss was discovered
		d.runnerGone(known)
	}
	d.replicas[r.name] = r
	d.step(plan.RunnerUp{Runner: r.name, Pool: r.pool.planned, Models: models()})
	d.startScraping(r)
}

// runnerGone notifies the planner that a replica no longer serves.
func (d *dispatcher) runnerGone(r *replica) {
	if d.replicas[r.name] == r {
		delete(d.replicas, r.name)
		d.step(plan.RunnerGone{Runner: r.name})
	}
}

// step feeds the planner an event and does what it returns, like the dispatcher's loop.
func (d *dispatcher) step(ev plan.Event) plan.Verdict {
	sim := d.sim
	if d.down {
		return plan.Return
	}
	d.observers.before(sim.now)
	actions := d.planner.Step(sim.now, ev)
	d.observers.step(sim.now, ev, actions)
	for _, s := range actions.Start {
		d.send(s)
	}
	for _, s := range actions.Evict {
		d.evict(s)
	}
	for _, a := range actions.Admit {
		sim.inline.admit(a)
	}
	for _, r := range actions.Refuse {
		sim.inline.refuse(r)
	}
	for _, c := range actions.Claim {
		life := d.lives
		sim.queue.add(sim.now.Add(claimLatency), func() {
			if d.lives == life {
				d.load(c.Key)
			}
		})
	}
	if wake := actions.Wake; !wake.Equal(d.wake) {
		d.wake = wake
		if !wake.IsZero() {
			sim.queue.add(wake, func() {
				if d.wake.Equal(wake) { // else it has thought better of it
					d.wake = time.Time{}
					d.step(plan.Tick{})
				}
			})
		}
	}
	return actions.Verdict
}
