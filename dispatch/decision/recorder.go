package decision

import (
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

// Planner is what a Recorder samples.
type Planner interface {
	Pools() []plan.PoolStatus
	Terms(now time.Time) [][]flowcontrol.Term
	Warnings(now time.Time) [][]flowcontrol.Warning
	Objectives(model string) flowcontrol.SLO
}

// Recorder takes samples of a planner. The goroutine that owns the planner owns it.
type Recorder struct {
	history  *History
	planner  Planner
	shapes   map[string]*shape   // by pool
	inputs   map[string]*inputs  // by runner
	gateways map[string]*gateway // by model; "": of all pools

	sampled time.Time // when the last sample was taken
	changed bool      // an allowance has changed since then
}

const (
	// sampleEvery is the longest time between two samples, and changeEvery the shortest. Grants for
	// prompts change with every line, hundreds of times a second.
	sampleEvery = time.Second
	changeEvery = 500 * time.Millisecond
)

// NewRecorder returns a Recorder of a planner that adds to a history.
func NewRecorder(h *History, planner Planner) *Recorder {
	return &Recorder{history: h, planner: planner, shapes: map[string]*shape{},
		inputs: map[string]*inputs{}, gateways: map[string]*gateway{}}
}

// Step takes over an event of the planner and what it led to. It is called for every line that
// ends, so it does next to nothing for most events, and allocates nothing for them.
func (r *Recorder) Step(now time.Time, ev plan.Event, did *plan.Actions) {
	switch ev := ev.(type) {
	case *plan.Finished:
		if !ev.Unsent {
			r.of(ev.Start.Runner).ended(ev.Outcome)
		}
	case plan.TokenGaps:
		in := r.of(ev.Runner)
		in.gaps, in.gapTime = in.gaps+ev.Gaps, in.gapTime+ev.Time
	case plan.Reading:
		r.read(ev)
	case plan.RunnerGone:
		delete(r.inputs, ev.Runner)
	}
	for i := range did.Evict {
		r.of(did.Evict[i].Runner).evicted++
	}
	if did.Changed {
		r.changed = true
		if now.Sub(r.sampled) >= changeEvery {
			r.sample(now)
		}
	}
}

// Tick takes a sample if the last one is old enough. It is called several times a second.
func (r *Recorder) Tick(now time.Time) {
	if since := now.Sub(r.sampled); since >= sampleEvery || r.changed && since >= changeEvery {
		r.sample(now)
	}
}

// of returns the inputs of a runner. Those of one that no pool has are forgotten with the next
// sample, so lines and readings that come after their runner has gone leave nothing behind.
func (r *Recorder) of(runner string) *inputs {
	in := r.inputs[runner]
	if in == nil {
		in = newInputs()
		r.inputs[runner] = in
	}
	return in
}

func (r *Recorder) read(ev plan.Reading) {
	if ev.Runner == "" {
		g := r.gateways[ev.Model]
		if g == nil {
			g = &gateway{}
			r.gateways[ev.Model] = g
		}
		g.read(ev.Reading, r.planner.Objectives(ev.Model))
		return
	}
	r.of(ev.Runner).read(ev.Reading)
}

// sample adds a sample of every pool to the history.
func (r *Recorder) sample(now time.Time) {
	r.sampled, r.changed = now, false
	status := r.planner.Pools()
	terms, warnings := r.planner.Terms(now), r.planner.Warnings(now)
	pools, samples := make([]PoolHistory, len(status)), make([]*sample, len(status))
	shapes := make(map[string]*shape, len(status))
	runners := make(map[string]*inputs, len(r.inputs))
	for i := range status {
		p := &status[i]
		name := p.ID
		pools[i] = PoolHistory{Name: name, Group: p.Name, Models: p.Models, Policy: p.Policy,
			Warnings: warnings[i]}
		s := r.shapes[name]
		if !s.fits(p, terms[i]) {
			s = newShape(p, terms[i])
		}
		shapes[name] = s
		samples[i] = r.sampleOf(now, p, s, terms[i])
		for j := range p.Runners {
			runners[p.Runners[j].ID] = r.of(p.Runners[j].ID)
		}
	}
	r.shapes, r.inputs = shapes, runners
	r.history.update(pools, samples)
}

func (r *Recorder) sampleOf(
	now time.Time, p *plan.PoolStatus, s *shape, terms []flowcontrol.Term,
) *sample {
	values := make([]Number, poolColumns, poolColumns+runnerColumns*len(p.Runners)+len(terms))
	values[poolInFlight], values[poolAllowance] = number(p.InFlight), number(p.Limit)
	values[poolJobs] = number(p.Jobs)
	at, all := r.gatewayOf(p.Models)
	values[poolGatewayAge] = seconds(now, at)
	var first [][]flowcontrol.Bucket
	for i := range p.Runners {
		runner := &p.Runners[i]
		in := r.of(runner.ID)
		all.evicted += in.evicted
		times, known := in.first.recent(now)
		if known {
			first = append(first, times)
		}
		values = appendRunner(values, now, runner, in, times)
	}
	of := flowcontrol.Metrics
	if users := r.firstTokensOf(now, p.Models); users != nil {
		of, first = flowcontrol.Gateway, users
	}
	setFirstTokens(values[poolFirstTokens:], sum(first))
	values[poolFirstSource] = Number(of)
	for _, t := range terms {
		values = append(values, Number(t.Value))
	}
	// Readers go on from the time of a decision, which they get to the millisecond.
	at = time.UnixMilli(now.UnixMilli())
	return &sample{at: at, shape: s, totals: all, reasons: poolReasons(p), values: values}
}

func appendRunner(
	values []Number, now time.Time, runner *plan.RunnerStatus, in *inputs,
	first []flowcontrol.Bucket,
) []Number {
	var v [runnerColumns]Number
	for i := range v {
		v[i] = Unknown
	}
	v[inFlight], v[allowance] = number(runner.InFlight), number(runner.Limit)
	v[prefilling], v[prompt] = number(runner.Prefilling), number(runner.Prompt)
	v[evicting], v[open] = flag(runner.Evict), flag(runner.Open)
	setFirstTokens(v[firstTokenColumns:], first)
	in.appendTo(&v, now)
	return append(values, v[:]...)
}

// setFirstTokens sets the columns of first tokens, which begin the values.
func setFirstTokens(values []Number, times []flowcontrol.Bucket) {
	values[firstCount] = Unknown
	if len(times) > 0 {
		values[firstCount] = Number(times[len(times)-1].Count)
	}
	values[firstMedian], values[firstP95] = quantile(times, 0.5), quantile(times, 0.95)
}

// gatewaysOf returns the gateways in front of a pool.
func (r *Recorder) gatewaysOf(models []string) (all []*gateway) {
	if g := r.gateways[""]; g != nil {
		all = append(all, g)
	}
	for _, m := range models {
		if g := r.gateways[m]; g != nil {
			all = append(all, g)
		}
	}
	return all
}

// gatewayOf returns what gateways counted of a pool, and when the last of them was read.
func (r *Recorder) gatewayOf(models []string) (at time.Time, all totals) {
	for _, g := range r.gatewaysOf(models) {
		if g.at.After(at) {
			at = g.at
		}
		all.firsts, all.lateFirsts = all.firsts+g.first.requests, all.lateFirsts+g.first.late
		all.answers, all.lateAnswers = all.answers+g.each.requests, all.lateAnswers+g.each.late
	}
	return at, all
}

// firstTokensOf returns the first tokens that gateways have counted of a pool; nil: none counts
// them.
func (r *Recorder) firstTokensOf(now time.Time, models []string) (all [][]flowcontrol.Bucket) {
	for _, g := range r.gatewaysOf(models) {
		if times, known := g.times.recent(now); known {
			all = append(all, times)
		}
	}
	return all
}
