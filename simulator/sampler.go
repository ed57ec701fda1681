package simulator

import (
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// sampler adds samples to the timeline of a simulation. It changes nothing in the simulation, so a
// run gives the same result with and without a timeline.
type sampler struct {
	sim       *simulation
	timeline  *Timeline
	step      time.Duration
	window    answeredWindow
	harvested []float64 // batch tokens, by sample
	// the engines' counters at the last sample
	totals      map[*replica]engineTotals
	predictions map[string]int // index in timeline.Predictions, by job
}

// engineTotals is what an engine had done by the last sample.
type engineTotals struct {
	iterations uint64
	busy       time.Duration
}

// answeredWindow collects the interactive requests answered since the last sample.
type answeredWindow struct {
	ttft, tpot     []time.Duration
	judged, passed int
}

// add counts a request; tpot is 0 for one of a single token. A nil window belongs to a run without
// a timeline.
func (w *answeredWindow) add(ttft, tpot time.Duration, passed bool) {
	if w == nil {
		return
	}
	w.ttft = append(w.ttft, ttft)
	if tpot > 0 {
		w.tpot = append(w.tpot, tpot)
	}
	w.judged++
	if passed {
		w.passed++
	}
}

func newSampler(sim *simulation) *sampler {
	r := &sampler{
		sim: sim, step: timelineStepFor(sim.setup.Scenario.Horizon),
		totals:      map[*replica]engineTotals{},
		predictions: map[string]int{},
	}
	r.timeline = &Timeline{Every: r.step.Seconds()}
	sim.interactive.window = &r.window
	return r
}

// sample adds the present state to the timeline.
func (r *sampler) sample() {
	t, sim := r.timeline, r.sim
	t.At = append(t.At, sim.now.Sub(epoch).Seconds())
	r.interactive()
	r.engines()
	put := func(s *Series, v int) { *s = append(*s, float64(v)) }
	wanted, ready, starting := sim.replicaCounts()
	put(&t.Wanted, wanted)
	put(&t.Ready, ready)
	put(&t.Starting, starting)
	if sim.dispatcher == nil { // no batch work
		put(&t.Harvest, 0)
		put(&t.InFlight, 0)
		return
	}
	r.harvest()
	inFlight, allowance := 0, 0
	why := plan.NoRunner
	for i, pool := range sim.dispatcher.planner.Pools() {
		inFlight += pool.InFlight
		allowance += pool.Limit
		if i == 0 || why == plan.NoRunner {
			why = pool.Reason
		}
	}
	put(&t.InFlight, inFlight)
	put(&t.Allowance, allowance)
	t.Reason = append(t.Reason, why)
	t.steering(sim.dispatcher.planner.Terms(sim.now))
	samples := int(sim.setup.Scenario.Horizon / r.step)
	if len(t.At)%(samples/maxPredictions+1) == 0 || sim.now.Equal(sim.end) {
		r.predictFinishes()
	}
}

func (r *sampler) interactive() {
	t, w := r.timeline, &r.window
	attainment := math.NaN()
	if w.judged > 0 {
		attainment = float64(w.passed) / float64(w.judged)
	}
	t.Attainment = append(t.Attainment, attainment)
	note := func(s *QuantileSeries, times []time.Duration) {
		q := Quantiles{P50: math.NaN(), P99: math.NaN()}
		if len(times) > 0 {
			slices.Sort(times)
			q = quantiles(times)
		}
		s.P50, s.P99 = append(s.P50, q.P50), append(s.P99, q.P99)
	}
	note(&t.TTFT, w.ttft)
	note(&t.TPOT, w.tpot)
	*w = answeredWindow{ttft: w.ttft[:0], tpot: w.tpot[:0]}
}

func (r *sampler) engines() {
	t, sim := r.timeline, r.sim
	running, waiting, used, blocks := 0, 0, 0, 0
	missing := math.NaN()
	for i := range t.Iteration {
		t.Iteration[i].Values = append(t.Iteration[i].Values, missing) // unless it is found below
	}
	for _, replica := range sim.replicas {
		s := replica.engine.Snapshot(sim.now)
		running += s.Running
		waiting += s.Waiting
		used += s.KVBlocksUsed
		blocks += s.KVBlocks
		i := slices.IndexFunc(t.Iteration, func(x ReplicaSeries) bool {
			return x.Replica == replica.name
		})
		if i < 0 && len(t.Iteration) < maxIterationSeries {
			i = len(t.Iteration)
			t.Iteration = append(t.Iteration, ReplicaSeries{Replica: replica.name})
			for range t.At { // it did not exist before
				t.Iteration[i].Values = append(t.Iteration[i].Values, missing)
			}
		}
		if i < 0 {
			continue
		}
		last := r.totals[replica]
		if s.Iterations > last.iterations {
			values := t.Iteration[i].Values
			values[len(values)-1] = float64(s.Busy-last.busy) / float64(time.Millisecond) / float64(
				s.Iterations-last.iterations)
		}
		r.totals[replica] = engineTotals{s.Iterations, s.Busy}
	}
	t.Running = append(t.Running, float64(running))
	t.Waiting = append(t.Waiting, float64(waiting))
	t.KVUsed = append(t.KVUsed, float64(used)/float64(max(1, blocks)))
}

func (r *sampler) harvest() {
	total := int64(0)
	for _, j := range r.sim.dispatcher.jobs {
		total += j.input + j.output
	}
	last := 0.0
	if n := len(r.harvested); n > 0 {
		last = r.harvested[n-1]
	}
	r.harvested = append(r.harvested, float64(total))
	r.timeline.Harvest = append(r.timeline.Harvest, (float64(total)-last)/r.step.Seconds())
}

// predictFinishes records when each job with a deadline is predicted to finish: by the autoscale
// policy where there is one; otherwise as if the jobs were served in the order of their deadlines
// at the pace of the last ten minutes.
func (r *sampler) predictFinishes() {
	at := r.sim.now.Sub(epoch).Seconds()
	for _, f := range r.sim.scaling.forecasts {
		finish := math.NaN()
		if !f.Finish.IsZero() {
			finish = f.Finish.Sub(epoch).Seconds()
		}
		r.addPrediction(f.Job, at, finish)
	}
	if r.sim.scaling.forecasts != nil {
		return
	}
	n := len(r.harvested)
	back := min(n-1, max(1, int(paceWindow/r.step)))
	pace := 0.0 // tokens a second
	if back > 0 {
		pace = (r.harvested[n-1] - r.harvested[n-1-back]) / (float64(back) * r.step.Seconds())
	}
	ahead := 0.0 // tokens of the jobs before, and its own
	for _, d := range r.sim.dispatcher.planner.Demand() {
		ahead += float64(d.Lines) * (d.Prompt + d.Output)
		if d.Deadline.IsZero() {
			return // and so are all that follow
		}
		finish := math.NaN()
		if pace > 0 {
			finish = at + ahead/pace
		}
		r.addPrediction(d.Key.Batch, at, finish)
	}
}

func (r *sampler) addPrediction(job string, at, finish float64) {
	i, known := r.predictions[job]
	if !known {
		i = len(r.timeline.Predictions)
		r.predictions[job] = i
		r.timeline.Predictions = append(r.timeline.Predictions, Prediction{Job: job})
	}
	p := &r.timeline.Predictions[i]
	p.At, p.Finish = append(p.At, at), append(p.Finish, finish)
}

// quantiles returns quantiles of sorted times: the smallest that the share of all does not exceed.
func quantiles(sorted []time.Duration) Quantiles {
	at := func(q float64) float64 {
		if len(sorted) == 0 {
			return 0
		}
		i := int(math.Ceil(q*float64(len(sorted)))) - 1
		return float64(sorted[max(0, i)]) / float64(time.Millisecond)
	}
	return Quantiles{P50: at(0.50), P95: at(0.95), P99: at(0.99)}
}
