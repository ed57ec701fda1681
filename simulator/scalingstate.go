package simulator

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// count is the number of requests that had arrived by a time.
type count struct {
	at       time.Time
	requests int
}

// meanMix is the exponential mean of the requests' lengths.
type meanMix struct {
	seen           float64
	prompt, output float64
}

// mixWindow is the number of requests that the mean is taken over.
const mixWindow = 1000

func (m *meanMix) add(prompt, output int) {
	m.seen = min(m.seen+1, mixWindow)
	m.prompt += (float64(prompt) - m.prompt) / m.seen
	m.output += (float64(output) - m.output) / m.seen
}

// observe returns what the daemon knows of the pools and jobs. Every pool serves every job.
func (s *scaling) observe() autoscale.State {
	state := autoscale.State{At: s.sim.now}
	if d := s.sim.dispatcher; d != nil {
		for _, d := range d.planner.Demand() {
			d.Key.Model = ""
			state.Jobs = append(state.Jobs, d)
		}
	}
	progress := s.sim.progress()
	for i, x := range s.sim.pools {
		p := autoscale.NewPool(registry.Pool{Name: x.name, Min: x.scaling.Min,
			Max: x.scaling.Max, Price: x.scaling.Price, Reclaim: x.scaling.Reclaim},
			s.flow.For(x.planned, models()))
		p.Harvested = x.work
		if x.scaling.Max == 0 {
			p.Min, p.Max = x.wanted, x.wanted
		}
		if i == 0 && s.sim.setup.Scenario.Interactive.Generator != scenario.None {
			p.Interactive = autoscale.Interactive{Served: true, Rate: s.rate(),
				Mix: costmodel.Mix{Prompt: s.mix.prompt, Output: s.mix.output}}
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

// rate returns the interactive requests a second over the last minute; NaN if less than ten seconds
// have passed.
func (s *scaling) rate() float64 {
	now := s.sim.now
	s.counts = append(s.counts, count{now, s.arrived})
	for len(s.counts) > 2 && now.Sub(s.counts[1].at) >= time.Minute {
		s.counts = s.counts[1:]
	}
	first := s.counts[0]
	if over := now.Sub(first.at); over >= 10*time.Second { // less is too noisy
		return float64(s.arrived-first.requests) / over.Seconds()
	}
	return math.NaN()
}

// progress estimates the work that the batch lines on a replica have received: their age, divided
// by the requests that share the replica.
func (sim *simulation) progress() map[*replica]float64 {
	since := map[*replica]time.Duration{}
	for _, req := range sim.requests {
		if req.line != nil {
			since[req.replica] += sim.now.Sub(req.arrived)
		}
	}
	progress := map[*replica]float64{}
	for r, age := range since {
		progress[r] = float64(age) / float64(time.Millisecond) / float64(max(1, r.inside))
	}
	return progress
}
