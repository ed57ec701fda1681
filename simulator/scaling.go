package simulator

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// scaling stands where the daemon tells an autoscaler how many replicas are wanted,
// and where that autoscaler starts them and lets them go.
//
// A run without batch work has the interactive law with the same constants: what
// any policy is judged against has the replicas that the traffic asks for.
type scaling struct {
	plant      *plant
	controller autoscale.Controller
	told       flowcontrol.Config
	due        time.Time // of the next step; zero: none is put down
	verdicts   map[string]*verdict
	forecasts  []autoscale.Forecast // of the last step; nil: nobody forecasts

	arrived int // interactive requests
	counts  []count
	mix     meanMix // of interactive requests
}

// count is how many requests had come by a time.
type count struct {
	at       time.Time
	requests int
}

// meanMix is the exponential mean of what requests are like.
type meanMix struct {
	seen           float64
	prompt, output float64
}

// mixMemory is over how many requests the mean is taken.
const mixMemory = 1000

func (m *meanMix) learn(prompt, output int) {
	m.seen = min(m.seen+1, mixMemory)
	m.prompt += (float64(prompt) - m.prompt) / m.seen
	m.output += (float64(output) - m.output) / m.seen
}

// verdict is what was said of a job's deadline.
type verdict struct {
	last       autoscale.Verdict
	infeasible time.Duration // when it was first called so; negative: never
}

func newScaling(p *plant) *scaling {
	return &scaling{plant: p, verdicts: map[string]*verdict{}}
}

// begin starts the controller, if it has anything to say: replicas to ask for, or
// deadlines to judge.
func (s *scaling) begin() error {
	p := s.plant
	scaled := slices.ContainsFunc(p.pools, func(x *pool) bool { return x.scaled.Max > 0 })
	dated := p.batches != nil && slices.ContainsFunc(p.batches.jobs, func(j *job) bool {
		return j.Window > 0
	})
	if !scaled && !dated {
		return nil
	}
	cfg := p.setup.Policy.Scale
	if cfg.Policy == "" {
		cfg = autoscale.DefaultConfig()
	}
	if p.batches == nil {
		cfg.Policy = "interactive"
	}
	var err error
	s.controller, err = autoscale.New(cfg)
	s.told = p.setup.told()
	s.counts = []count{{at: p.now}}
	s.happened()
	return err
}

// happened asks for a step now: a job has come or gone, or a replica.
func (s *scaling) happened() { s.wake(s.plant.now) }

func (s *scaling) wake(at time.Time) {
	if s.controller == nil || !s.due.IsZero() && !s.due.After(at) {
		return
	}
	s.due = at
	s.plant.agenda.put(at, func() {
		if s.due.Equal(at) {
			s.step()
		}
	})
}

func (s *scaling) step() {
	now := s.plant.now
	d := s.controller.Step(now, s.state())
	s.due = time.Time{}
	s.forecasts = d.Jobs
	if b := s.plant.batches; b != nil {
		b.watchers.scaled(now, d)
	}
	for _, f := range d.Jobs {
		s.judge(f)
	}
	for _, w := range d.Pools {
		s.apply(w)
	}
	if !d.Wake.After(now) {
		d.Wake = now.Add(time.Second)
	}
	s.wake(d.Wake)
}

func (s *scaling) judge(f autoscale.Forecast) {
	v := s.verdicts[f.Job]
	if v == nil {
		v = &verdict{infeasible: -1}
		s.verdicts[f.Job] = v
	}
	infeasible := f.Verdict == autoscale.Infeasible
	if b := s.plant.batches; b != nil && infeasible != (v.last == autoscale.Infeasible) {
		b.step(plan.Judged{Batch: f.Job, Infeasible: infeasible})
	}
	v.last = f.Verdict
	if infeasible && v.infeasible < 0 {
		v.infeasible = s.plant.now.Sub(epoch)
	}
}

// flagged is when a job was first called infeasible; 0: it never was.
func (s *scaling) flagged(job string) time.Duration {
	if v := s.verdicts[job]; v != nil {
		return max(0, v.infeasible)
	}
	return 0
}

// apply does what an autoscaler would.
func (s *scaling) apply(w autoscale.Wanted) {
	x := s.plant.poolNamed(w.Pool)
	s.close(x, w.Closed)
	if x.scaled.Max == 0 {
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
	x.wanted = min(max(w.Replicas, x.scaled.Min), x.scaled.Max)
	for x.count(starting)+x.count(ready) < x.wanted {
		x.add().start()
	}
}

// close keeps batch lines away from a pool, or lets them in again.
func (s *scaling) close(x *pool, closed bool) {
	if b := s.plant.batches; b != nil && closed != x.closed {
		x.closed = closed
		for _, r := range x.replicas {
			switch {
			case r.phase != ready:
			case closed:
				b.runnerGone(r)
			default:
				b.runnerUp(r)
			}
		}
	}
}

// state is the world as the daemon knows it.
func (s *scaling) state() autoscale.State {
	var state autoscale.State
	lines := autoscale.Lines{}
	if b := s.plant.batches; b != nil {
		left := 0.0
		for _, d := range b.planner.Demand() {
			state.Jobs = append(state.Jobs, autoscale.Job{
				ID: d.Key.Batch, Created: d.Created, StartBy: d.StartBy, Deadline: d.Deadline,
				Lines: d.Lines, Work: d.Work, Least: d.Least, Paused: d.Paused,
				Longest: d.Longest, Answered: d.Answered, UnderWay: d.InFlight,
			})
			n := float64(d.Lines)
			left += n
			lines.Mix.Prompt += float64(n * d.Prompt)
			lines.Mix.Output += float64(n * d.Output)
			lines.Work += d.Work
		}
		if left > 0 {
			lines.Mix.Prompt, lines.Mix.Output, lines.Work = lines.Mix.Prompt/left,
				lines.Mix.Output/left, lines.Work/left
		}
	}
	progress := s.plant.progress()
	for i, x := range s.plant.pools {
		flow := s.told.For(x.models)
		p := autoscale.Pool{
			ID: x.name, Min: x.scaled.Min, Max: x.scaled.Max, Price: x.scaled.Price,
			Reclaim: x.scaled.Reclaim,
			Engine:  flow.Engine, SLO: flow.SLO, Unhurried: flow.Policy == "probe" &&
				!flow.Probe.Shared, Lines: lines, Harvested: x.work,
		}
		if x.scaled.Max == 0 {
			p.Min, p.Max = x.wanted, x.wanted
		}
		if i == 0 && s.plant.setup.Scenario.Interactive.Generator != scenario.None {
			p.Interactive = autoscale.Interactive{Served: true, Rate: s.rate(),
				Mix: flowcontrol.Mix{Prompt: s.mix.prompt, Output: s.mix.output}}
		}
		for _, r := range x.replicas {
			p.Replicas = append(p.Replicas, autoscale.Replica{ID: r.name, Phase: phases[r.phase],
				Since: r.since, Progress: progress[r]})
		}
		state.Pools = append(state.Pools, p)
	}
	return state
}

var phases = map[phase]autoscale.Phase{starting: autoscale.Starting, ready: autoscale.Ready,
	draining: autoscale.Draining}

// rate is the interactive requests a second over the last minute.
func (s *scaling) rate() float64 {
	now := s.plant.now
	s.counts = append(s.counts, count{now, s.arrived})
	for len(s.counts) > 2 && now.Sub(s.counts[1].at) >= time.Minute {
		s.counts = s.counts[1:]
	}
	first := s.counts[0]
	if over := now.Sub(first.at); over >= 10*time.Second { // less tells nothing
		return float64(s.arrived-first.requests) / over.Seconds()
	}
	return math.NaN()
}

// progress is about how much work the batch lines on a replica have had: the time
// since they came, which they have shared.
func (p *plant) progress() map[*replica]float64 {
	since := map[*replica]time.Duration{}
	for _, f := range p.flights {
		if f.line != nil {
			since[f.replica] += p.now.Sub(f.arrived)
		}
	}
	progress := map[*replica]float64{}
	for r, age := range since {
		progress[r] = float64(age) / float64(time.Millisecond) / float64(max(1, r.load))
	}
	return progress
}

// answered learns from a line that was answered, for which the planner's own costs
// are taken: what is left is told in the same unit.
func (s *scaling) answered(a *attempt, input, output int) {
	cost := s.plant.setup.Policy.Plan.Cost
	a.replica.pool.work += float64(cost.PromptToken*float64(input)) +
		float64(cost.OutputToken*float64(output))
}

// served learns from an interactive request.
func (s *scaling) served(f *flight, c engine.Completion) {
	s.mix.learn(max(1, f.input-c.Cached), c.Output)
}

// PoolUse is what a pool was used and paid for.
type PoolUse struct {
	Name string `json:"name"`
	// Hours of replicas, from being asked for to being gone, and what they cost.
	Hours float64 `json:"gpu_hours"`
	Cost  float64 `json:"cost"`
	// Started counts replicas that were asked for on the way.
	Started int `json:"started"`
}

// uses are the pools', in the scenario's order.
func (p *plant) uses() []PoolUse {
	var uses []PoolUse
	for i, x := range p.pools {
		begun := p.setup.Scenario.Pool.Replicas
		if i > 0 {
			begun = p.setup.Scenario.BatchPools[i-1].Replicas
		}
		uses = append(uses, PoolUse{Name: cmp.Or(x.name, "pool"), Hours: x.hours(),
			Cost: x.scaled.Price * x.hours(), Started: x.starts - begun})
	}
	return uses
}
