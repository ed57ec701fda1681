package scaling

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/dispatch/plan"
)

// fluidScenario is a scenario for a scaling policy: the pools, their traffic and their jobs. Its
// replicas start, serve and drain one by one, but traffic and batch work flow as rates after the
// engine's cost model, so that days take a moment. The simulator runs single requests.
type fluidScenario struct {
	// Pools are what the policy observes, without Replicas, Interactive.Rate and Harvested, which
	// runFluid fills in.
	Pools []autoscale.PoolState
	// Rate is the interactive requests a second at a time since the beginning, for the first pool
	// that serves them.
	Rate func(t time.Duration) float64
	Jobs []job
	// Warm is the time in which the policy may learn before anything is measured; Length is the
	// time that is measured.
	Warm, Length time.Duration
	// Achieved is the share of the cost model's harvest that flow control really gets.
	Achieved float64
	// Cold draws how long a start takes. Rand draws which replicas are reclaimed.
	Cold func() time.Duration
	Rand *rand.Rand
	// Drain is how long a replica takes to become empty.
	Drain time.Duration
	Step  time.Duration
}

// job is a batch. Times are since the beginning, Warm included.
type job struct {
	ID           string
	At, Deadline time.Duration
	StartBy      time.Duration // 0: none
	Lines        int
	Work         float64 // milliseconds
}

// outcome is the result of a run.
type outcome struct {
	// Hours of replicas paid, and what they cost at the pools' prices (1 where there is none).
	Hours, Cost float64
	Starts      int
	// Met counts the deadlines met.
	Met   int
	Fates []fate // as fluidScenario.Jobs
	// Short is the share of the time in which fewer replicas were ready than the traffic needed at
	// that moment.
	Short float64
	// Changes of the number wanted, all pools.
	Changes int
	// Paid is the mean number of replicas paid for in each slot of the measured time, over all
	// pools. Idle is how many of them were starting or draining.
	Paid, Idle []float64
}

// fate is how a job ended.
type fate struct {
	Began, Finished time.Duration // 0: never
	Met             bool
	// Flagged is when the policy first reported that the deadline can't be met, Risked that it may
	// be missed; 0: never.
	Flagged, Risked time.Duration
}

// slotLength is the resolution of outcome.Paid.
const slotLength = 10 * time.Minute

type replica struct {
	autoscale.Replica
	ready, gone time.Time // when it will be; gone is zero while nobody has asked it to stop
}

// pool is a pool's replicas, the oldest first.
type pool struct {
	spec      *autoscale.PoolState
	replicas  []replica
	harvested float64
	closed    bool
	wanted    int
}

// epoch is midnight.
var epoch = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// runFluid runs a scenario with a controller.
func runFluid(s fluidScenario, controller autoscale.Controller) outcome {
	out := outcome{Fates: make([]fate, len(s.Jobs)),
		Paid: make([]float64, int(s.Length/slotLength)),
		Idle: make([]float64, int(s.Length/slotLength))}
	pools := make([]pool, len(s.Pools))
	for i := range pools {
		pools[i] = pool{spec: &s.Pools[i]}
	}
	left := make([]float64, len(s.Jobs))
	order := make([]int, len(s.Jobs))
	for i, j := range s.Jobs {
		left[i], order[i] = j.Work, i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(s.Jobs[a].Deadline, s.Jobs[b].Deadline)
	})
	born, wake, short := 0, epoch, 0
	end := s.Warm + s.Length
	for t := time.Duration(0); t < end; t += s.Step {
		now, counts := epoch.Add(t), t >= s.Warm
		changed := false
		for i := range pools {
			changed = pools[i].advance(now, s) || changed
		}
		for _, j := range s.Jobs {
			changed = changed || (j.At > t-s.Step && j.At <= t)
		}
		if changed || !now.Before(wake) {
			d := controller.Step(now, s.state(t, pools, left, out.Fates))
			wake = d.Wake
			for i, w := range d.Pools {
				p := &pools[i]
				if counts && w.Replicas != p.wanted {
					out.Changes++
				}
				p.wanted, p.closed = w.Replicas, w.Closed
				started := p.follow(now, w, s, &born)
				if counts {
					out.Starts += started
				}
			}
			for _, f := range d.Jobs {
				i := slices.IndexFunc(s.Jobs, func(j job) bool { return j.ID == f.Job })
				fate := &out.Fates[i]
				switch {
				case f.Verdict == autoscale.Infeasible && fate.Flagged == 0:
					fate.Flagged = t
				case f.Verdict == autoscale.AtRisk && fate.Risked == 0:
					fate.Risked = t
				}
			}
		}
		s.harvest(t, pools, order, left, out.Fates)
		for i := range pools {
			p := &pools[i]
			if !counts {
				continue
			}
			hours := float64(float64(len(p.replicas)) * s.Step.Hours())
			out.Hours += hours
			out.Cost += float64(hours * cmp.Or(p.spec.Price, 1))
			slot, part := int((t-s.Warm)/slotLength), s.Step.Seconds()/slotLength.Seconds()
			out.Paid[slot] += float64(float64(len(p.replicas)) * part)
			out.Idle[slot] += float64(float64(len(p.replicas)-p.ready()) * part)
			if p.spec.Interactive.Served && p.serving() < replicasNeeded(*p.spec, s.Rate(t)) {
				short++
			}
		}
	}
	out.Short = float64(short) * s.Step.Seconds() / s.Length.Seconds()
	for _, f := range out.Fates {
		if f.Met {
			out.Met++
		}
	}
	return out
}

// replicasNeeded returns how many replicas a rate of interactive requests needs.
func replicasNeeded(p autoscale.PoolState, rate float64) int {
	return int(math.Ceil(rate/p.Interactive.PerReplica - 1e-9))
}

// state returns what the policy observes.
func (s fluidScenario) state(
	t time.Duration, pools []pool, left []float64, fates []fate,
) autoscale.State {
	var state autoscale.State
	for i := range pools {
		p := *pools[i].spec
		p.Harvested = pools[i].harvested
		for _, r := range pools[i].replicas {
			p.Replicas = append(p.Replicas, r.Replica)
		}
		if p.Interactive.Served {
			p.Interactive.Rate = s.Rate(t)
		}
		state.Pools = append(state.Pools, p)
	}
	for i, j := range s.Jobs {
		if j.At > t || left[i] <= 0 || j.Deadline <= t {
			continue
		}
		job := plan.Demand{
			Key: plan.JobKey{Batch: j.ID}, Created: epoch.Add(j.At),
			Deadline: epoch.Add(j.Deadline), Work: left[i], Least: left[i], Answered: j.Lines,
			Lines: int(math.Ceil(float64(j.Lines) * left[i] / j.Work)),
		}
		if j.StartBy > 0 && fates[i].Began == 0 {
			job.StartBy = epoch.Add(j.StartBy)
		}
		state.Jobs = append(state.Jobs, job)
	}
	return state
}

// advance lets replicas become ready, end, and be reclaimed.
func (p *pool) advance(now time.Time, s fluidScenario) (changed bool) {
	p.replicas = slices.DeleteFunc(p.replicas, func(r replica) bool {
		gone := !r.gone.IsZero() && !now.Before(r.gone)
		if r.Phase == autoscale.Ready && p.spec.Reclaim > 0 &&
			s.Rand.Float64() < p.spec.Reclaim*s.Step.Hours() {
			gone, changed = true, true
		}
		return gone
	})
	for i := range p.replicas {
		if r := &p.replicas[i]; r.Phase == autoscale.Starting && !now.Before(r.ready) {
			r.Phase, r.Since, changed = autoscale.Ready, now, true
		}
	}
	return changed
}

// follow starts and drains replicas as the policy wants.
func (p *pool) follow(now time.Time, w autoscale.Wanted, s fluidScenario, born *int) (started int) {
	there := 0
	for i := range p.replicas {
		r := &p.replicas[i]
		if r.Phase == autoscale.Draining {
			continue
		}
		if slices.Contains(w.GiveUp, r.ID) || slices.Contains(w.Drain, r.ID) {
			r.gone = now.Add(s.Drain)
			if r.Phase == autoscale.Starting {
				r.gone = now // nothing is lost
			}
			r.Phase, r.Since = autoscale.Draining, now
			continue
		}
		there++
	}
	for ; there < w.Replicas; there++ {
		*born++
		started++
		p.replicas = append(p.replicas, replica{
			Replica: autoscale.Replica{ID: strconv.Itoa(*born), Phase: autoscale.Starting,
				Since: now}, ready: now.Add(s.Cold()),
		})
	}
	return started
}

// ready counts the replicas that take batch lines.
func (p *pool) ready() int { return p.count(autoscale.Ready) }

// serving counts the replicas that answer interactive requests: draining ones do too.
func (p *pool) serving() int { return p.ready() + p.count(autoscale.Draining) }

func (p *pool) count(phase autoscale.Phase) int {
	n := 0
	for _, r := range p.replicas {
		if r.Phase == phase {
			n++
		}
	}
	return n
}

// harvest does the work of a step, earliest deadline first.
func (s fluidScenario) harvest(
	t time.Duration, pools []pool, order []int, left []float64, fates []fate,
) {
	for i := range pools {
		p := &pools[i]
		ready := p.ready()
		if ready == 0 || p.closed {
			continue
		}
		requests := 0.0
		if p.spec.Interactive.Served {
			requests = s.Rate(t) / float64(ready)
		}
		can := float64(ready) * s.Achieved * harvestRate(*p.spec, requests) * s.Step.Seconds()
		for _, k := range order {
			j := s.Jobs[k]
			if j.At > t || left[k] <= 0 || t >= j.Deadline || can <= 0 {
				continue
			}
			if fates[k].Began == 0 {
				fates[k].Began = t
			}
			done := min(can, left[k])
			can -= done
			left[k] -= done
			p.harvested += done
			if left[k] <= 1e-6*j.Work {
				left[k] = 0
				fates[k].Finished = t + s.Step
				fates[k].Met = fates[k].Finished <= j.Deadline
			}
		}
	}
}

// harvestRate returns the work a second, in milliseconds, that a replica's engine has left for
// batch lines beside interactive requests, if flow control steers its iterations to nine tenths of
// the TPOT objective.
func harvestRate(p autoscale.PoolState, requests float64) float64 {
	target := 0.9 * float64(p.SLO.TPOT) / float64(time.Millisecond)
	mix := p.Interactive.Mix
	running := requests * mix.Output * target / 1000
	load := costmodel.Load{
		Running: running, Context: running * (mix.Prompt + float64(mix.Output/2)),
		PromptRate: requests * mix.Prompt, PromptMean: mix.Prompt,
	}
	lines := min(p.Engine.CostModel.Lines(load, p.Lines.Mix, target),
		float64(p.Engine.MaxSeqs)-running)
	if lines <= 0 {
		return 0
	}
	return lines / p.Engine.CostModel.MeanIteration(load, p.Lines.Mix, lines) * 1000 /
		p.Lines.Mix.Output *
		p.Lines.Work
}
