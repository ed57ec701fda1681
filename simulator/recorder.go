package simulator

import (
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// recorder makes the tape of a plant. It looks and changes nothing, so that a run
// with a tape is the run without.
type recorder struct {
	plant    *plant
	tape     *Tape
	step     time.Duration
	window   window
	useful   []float64 // batch tokens by sample
	before   map[*replica]engineTotals
	predicts map[string]int // job: index of tape.Predictions
}

// engineTotals is what an engine had done at the last sample.
type engineTotals struct {
	iterations uint64
	busy       time.Duration
}

// window is the interactive requests answered since the last sample.
type window struct {
	ttft, tpot     []time.Duration
	judged, passed int
}

// add notes a request; tpot is 0 for one of a single token. A nil window is of a
// run without a tape.
func (w *window) add(ttft, tpot time.Duration, passed bool) {
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

func newRecorder(p *plant) *recorder {
	r := &recorder{
		plant: p, step: tapeStep(p.setup.Scenario.Horizon), before: map[*replica]engineTotals{},
		predicts: map[string]int{},
	}
	r.tape = &Tape{Every: r.step.Seconds()}
	p.users.window = &r.window
	return r
}

// sample adds the present to the tape.
func (r *recorder) sample() {
	t, p := r.tape, r.plant
	t.At = append(t.At, p.now.Sub(epoch).Seconds())
	r.interactive()
	r.engines()
	put := func(s *Series, v int) { *s = append(*s, float64(v)) }
	wanted, ready, starting := p.replicaCounts()
	put(&t.Wanted, wanted)
	put(&t.Ready, ready)
	put(&t.Starting, starting)
	if p.batches == nil {
		return
	}
	r.harvest()
	inFlight, allowance := 0, 0
	why := plan.NoRunner
	for i, pool := range p.batches.planner.Pools() {
		inFlight += pool.InFlight
		allowance += pool.Limit
		if i == 0 || why == plan.NoRunner {
			why = pool.Why
		}
	}
	put(&t.InFlight, inFlight)
	put(&t.Allowance, allowance)
	t.Reason = append(t.Reason, why)
	t.steering(p.batches.planner.Terms(p.now))
	if samples := int(p.setup.Scenario.Horizon / r.step); len(t.At)%(samples/mostPredictions+1) == 0 || p.now.Equal(p.end) {
		r.predict()
	}
}

func (r *recorder) interactive() {
	t, w := r.tape, &r.window
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
	*w = window{ttft: w.ttft[:0], tpot: w.tpot[:0]}
}

func (r *recorder) engines() {
	t, p := r.tape, r.plant
	running, waiting, used, blocks := 0, 0, 0, 0
	missing := math.NaN()
	for i := range t.Iteration {
		t.Iteration[i].Values = append(t.Iteration[i].Values, missing) // unless it is found below
	}
	for _, replica := range p.replicas {
		s := replica.engine.Snapshot(p.now)
		running += s.Running
		waiting += s.Waiting
		used += s.KVBlocksUsed
		blocks += s.KVBlocks
		i := slices.IndexFunc(t.Iteration, func(x ReplicaSeries) bool {
			return x.Replica == replica.name
		})
		if i < 0 && len(t.Iteration) < mostDrawn {
			i = len(t.Iteration)
			t.Iteration = append(t.Iteration, ReplicaSeries{Replica: replica.name})
			for range t.At { // it did not stand here before
				t.Iteration[i].Values = append(t.Iteration[i].Values, missing)
			}
		}
		if i < 0 {
			continue
		}
		last := r.before[replica]
		if s.Iterations > last.iterations {
			values := t.Iteration[i].Values
			values[len(values)-1] = float64(s.Busy-last.busy) / float64(time.Millisecond) / float64(
				s.Iterations-last.iterations)
		}
		r.before[replica] = engineTotals{s.Iterations, s.Busy}
	}
	t.Running = append(t.Running, float64(running))
	t.Waiting = append(t.Waiting, float64(waiting))
	t.KVUsed = append(t.KVUsed, float64(used)/float64(max(1, blocks)))
}

func (r *recorder) harvest() {
	total := int64(0)
	for _, j := range r.plant.batches.jobs {
		total += j.input + j.output
	}
	last := 0.0
	if n := len(r.useful); n > 0 {
		last = r.useful[n-1]
	}
	r.useful = append(r.useful, float64(total))
	r.tape.Harvest = append(r.tape.Harvest, (float64(total)-last)/r.step.Seconds())
}

// predict tells when each job with a deadline is thought to finish: by the law that
// scales the pool, where there is one; else as if the jobs went on in the order of
// their deadlines at the pace of the last ten minutes.
func (r *recorder) predict() {
	at := r.plant.now.Sub(epoch).Seconds()
	for _, f := range r.plant.scaling.forecasts {
		finish := math.NaN()
		if !f.Finish.IsZero() {
			finish = f.Finish.Sub(epoch).Seconds()
		}
		r.note(f.Job, at, finish)
	}
	if r.plant.scaling.forecasts != nil {
		return
	}
	n := len(r.useful)
	back := min(n-1, max(1, int(paceOver/r.step)))
	pace := 0.0 // tokens a second
	if back > 0 {
		pace = (r.useful[n-1] - r.useful[n-1-back]) / (float64(back) * r.step.Seconds())
	}
	ahead := 0.0 // tokens of the jobs before, and its own
	for _, d := range r.plant.batches.planner.Demand() {
		ahead += float64(float64(d.Lines) * (d.Prompt + d.Output))
		if d.Deadline.IsZero() {
			return // and so are all that follow
		}
		finish := math.NaN()
		if pace > 0 {
			finish = at + ahead/pace
		}
		r.note(d.Key.Batch, at, finish)
	}
}

func (r *recorder) note(job string, at, finish float64) {
	i, known := r.predicts[job]
	if !known {
		i = len(r.tape.Predictions)
		r.predicts[job] = i
		r.tape.Predictions = append(r.tape.Predictions, Prediction{Job: job})
	}
	p := &r.tape.Predictions[i]
	p.At, p.Finish = append(p.At, at), append(p.Finish, finish)
}

// quantiles of sorted times: the smallest that the share of all does not exceed.
func quantiles(sorted []time.Duration) Quantiles {
	at := func(q float64) float64 {
		if len(sorted) == 0 {
			return 0
		}
		i := int(math.Ceil(q*float64(len(sorted)))) - 1
		return float64(sorted[max(0, i)]) / float64(time.Millisecond)
	}
	return Quantiles{P50: at(0.50), P99: at(0.99)}
}
