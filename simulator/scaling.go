package simulator

import (
	"slices"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/simulator/engine"
)

// scaling takes the place of the autoscaler: it asks the policy for the number of replicas that are
// wanted, and starts and drains them.
//
// A run without batch work has the interactive policy with the same constants, so every policy is
// compared with the replicas that the traffic needs.
type scaling struct {
	sim   *simulation
	cfg   autoscale.Config
	fleet *autoscale.Fleet // nil: nothing is decided, or the daemon is down
	// flow control's configuration, by pool
	flow      flowcontrol.Config
	nextStep  time.Time // zero: none is scheduled
	verdicts  map[string]*verdict
	forecasts []autoscale.Forecast // of the last step; nil: the policy makes none

	arrived int // interactive requests
	counts  []count
	mix     meanMix // of interactive requests
}

// verdict is what the policy has reported about a job's deadline.
type verdict struct {
	last       autoscale.Verdict
	infeasible time.Duration // when it was first reported; negative: never
}

func newScaling(sim *simulation) *scaling {
	return &scaling{sim: sim, verdicts: map[string]*verdict{}}
}

// begin starts the policy if there is something to decide: replicas to ask for, or deadlines to
// judge.
func (s *scaling) begin() error {
	sim := s.sim
	scaled := slices.ContainsFunc(sim.pools, func(x *pool) bool { return x.scaling.Max > 0 })
	dated := sim.dispatcher != nil && slices.ContainsFunc(sim.dispatcher.jobs, func(j *job) bool {
		return j.Window > 0
	})
	if !scaled && !dated {
		return nil
	}
	cfg := sim.setup.Policy.Scale
	if cfg.Policy == "" {
		cfg = autoscale.DefaultConfig()
	}
	if !sim.withBatch {
		cfg.Policy = "interactive"
	}
	var err error
	s.cfg = cfg
	s.fleet, err = autoscale.NewFleet(cfg)
	s.flow = sim.setup.flowConfig()
	s.counts = []count{{at: sim.now}}
	s.stepNow()
	return err
}

// stepNow schedules a step now, because a job or a replica has come or gone.
func (s *scaling) stepNow() { s.wake(s.sim.now) }

func (s *scaling) wake(at time.Time) {
	if s.fleet == nil || !s.nextStep.IsZero() && !s.nextStep.After(at) {
		return
	}
	s.nextStep = at
	s.sim.queue.add(at, func() {
		if s.nextStep.Equal(at) {
			s.step()
		}
	})
}

func (s *scaling) step() {
	now := s.sim.now
	decision := s.decide(s.observe())
	s.nextStep = time.Time{}
	s.forecasts = decision.Jobs
	if d := s.sim.dispatcher; d != nil {
		d.observers.scaled(now, decision)
	}
	for _, f := range decision.Jobs {
		s.recordForecast(f)
	}
	for _, w := range decision.Pools {
		s.apply(w)
	}
	if !decision.Wake.After(now) {
		decision.Wake = now.Add(time.Second)
	}
	s.wake(decision.Wake)
}

// decide returns the policy's decision on a state. Those of a recorded one come from here too.
func (s *scaling) decide(state autoscale.State) autoscale.Decision {
	return s.fleet.Step(state.At, state)
}

func (s *scaling) recordForecast(f autoscale.Forecast) {
	v := s.verdicts[f.Job]
	if v == nil {
		v = &verdict{infeasible: -1}
		s.verdicts[f.Job] = v
	}
	infeasible := f.Verdict == autoscale.Infeasible
	if d := s.sim.dispatcher; d != nil && infeasible != (v.last == autoscale.Infeasible) {
		d.step(plan.Feasibility{Batch: f.Job, Infeasible: infeasible})
	}
	v.last = f.Verdict
	if infeasible && v.infeasible < 0 {
		v.infeasible = s.sim.now.Sub(epoch)
	}
}

// flagged returns when a job was first reported infeasible; 0: never.
func (s *scaling) flagged(job string) time.Duration {
	if v := s.verdicts[job]; v != nil {
		return max(0, v.infeasible)
	}
	return 0
}

// apply does what an autoscaler would.
func (s *scaling) apply(w autoscale.Wanted) {
	x := s.sim.pool(w.Pool)
	s.setClosed(x, w.Closed)
	if x.scaling.Max == 0 {
		return
	}
	named := func(name string) *replica {
		if i := slices.IndexFunc(x.replicas, func(r *replica) bool {
			return r.name == name
		}); i >= 0 {
			return x.replicas[i]
		}
		return nil
	}
	for _, name := range w.GiveUp {
		if r := named(name); r != nil && r.phase == starting {
			r.end()
		}
	}
	for _, name := range w.Drain {
		if r := named(name); r != nil {
			r.drain()
		}
	}
	x.wanted = min(max(w.Replicas, x.scaling.Min), x.scaling.Max)
	for x.count(starting)+x.count(ready) < x.wanted {
		x.add().start()
	}
}

// setClosed closes a pool to batch lines, or opens it.
func (s *scaling) setClosed(x *pool, closed bool) {
	if d := s.sim.dispatcher; d != nil && closed != x.closed {
		x.closed = closed
		for _, r := range x.replicas {
			switch {
			case r.phase != ready:
			case closed:
				d.runnerGone(r)
			default:
				d.runnerUp(r)
			}
		}
	}
}

// answered counts the work of an answered line in the planner's unit.
func (s *scaling) answered(a *attempt, input, output int) {
	cost := s.sim.setup.Policy.Plan.Cost
	a.replica.pool.work += cost.Work(float64(input), float64(output))
}

// served adds a served interactive request to the mean mix.
func (s *scaling) served(req *request, c engine.Completion) {
	s.mix.add(max(1, req.input-c.Cached), c.Output)
}
