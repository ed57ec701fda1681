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
}

// Recorder takes samples of a planner. The goroutine that owns the planner owns it.
type Recorder struct {
	history  *History
	planner  Planner
	shapes   map[string]*shape // by pool
	readings map[string]reading
	gateways map[string]*gateway // by model; "": of all pools
	evicted  map[string]float64  // lines, by runner

	sampled time.Time // when the last sample was taken
	changed bool      // an allowance has changed since then
}

// reading is the last reading of a runner.
type reading struct {
	source                   flowcontrol.Source
	sampled                  time.Time
	running, waiting, kvUsed Number
}

const (
	// sampleEvery is the longest time between two samples, and changeEvery the shortest. Grants for
	// prompts change with every line, hundreds of times a second.
	sampleEvery = time.Second
	changeEvery = 500 * time.Millisecond
	// metricsFor is how long a reading of metrics is preferred to one of capabilities, which shows
	// less.
	metricsFor = 15 * time.Second
)

// NewRecorder returns a Recorder of a planner that adds to a history.
func NewRecorder(h *History, planner Planner) *Recorder {
	return &Recorder{history: h, planner: planner, shapes: map[string]*shape{},
		readings: map[string]reading{}, gateways: map[string]*gateway{},
		evicted: map[string]float64{}}
}

// Step takes over an event of the planner and what it led to. It is called for every line that
// ends, so it does next to nothing for most events.
func (r *Recorder) Step(now time.Time, ev plan.Event, did *plan.Actions) {
	switch ev := ev.(type) {
	case plan.Reading:
		r.read(now, ev)
	case plan.RunnerGone:
		delete(r.readings, ev.Runner)
		delete(r.evicted, ev.Runner)
	}
	for i := range did.Evict {
		r.evicted[did.Evict[i].Runner]++
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

func (r *Recorder) read(now time.Time, ev plan.Reading) {
	if ev.Runner == "" {
		g := r.gateways[ev.Model]
		if g == nil {
			g = &gateway{}
			r.gateways[ev.Model] = g
		}
		g.read(ev.Reading)
		return
	}
	last := r.readings[ev.Runner]
	if ev.Source != flowcontrol.Metrics && last.source == flowcontrol.Metrics &&
		now.Sub(last.sampled) < metricsFor {
		return
	}
	r.readings[ev.Runner] = reading{source: ev.Source, sampled: ev.Sampled,
		running: Number(ev.Running), waiting: Number(ev.Waiting), kvUsed: Number(ev.KVUsed)}
}

// sample adds a sample of every pool to the history.
func (r *Recorder) sample(now time.Time) {
	r.sampled, r.changed = now, false
	status := r.planner.Pools()
	terms, warnings := r.planner.Terms(now), r.planner.Warnings(now)
	pools, samples := make([]Pool, len(status)), make([]*sample, len(status))
	shapes := make(map[string]*shape, len(status))
	for i := range status {
		p := &status[i]
		name := p.ID
		pools[i] = Pool{Name: name, Group: p.Name, Models: p.Models, Policy: p.Policy,
			Warnings: warnings[i]}
		s := r.shapes[name]
		if !s.fits(p, terms[i]) {
			s = newShape(p, terms[i])
		}
		shapes[name] = s
		samples[i] = r.sampleOf(now, p, s, terms[i])
	}
	r.shapes = shapes
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
	for i := range p.Runners {
		runner := &p.Runners[i]
		all.evicted += r.evicted[runner.ID]
		values = r.appendRunner(values, now, runner)
	}
	for _, t := range terms {
		values = append(values, Number(t.Value))
	}
	// Readers go on from the time of a decision, which they get to the millisecond.
	at = time.UnixMilli(now.UnixMilli())
	return &sample{at: at, shape: s, totals: all, reasons: poolReasons(p), values: values}
}

func (r *Recorder) appendRunner(
	values []Number, now time.Time, runner *plan.RunnerStatus,
) []Number {
	var v [runnerColumns]Number
	v[inFlight], v[allowance] = number(runner.InFlight), number(runner.Limit)
	v[prefilling], v[prompt] = number(runner.Prefilling), number(runner.Prompt)
	v[evicting], v[open] = flag(runner.Evict), flag(runner.Open)
	if read, known := r.readings[runner.ID]; known {
		v[source], v[readingAge] = Number(read.source), seconds(now, read.sampled)
		v[running], v[waiting], v[kvUsed] = read.running, read.waiting, read.kvUsed
	}
	return append(values, v[:]...)
}

// gatewayOf returns what gateways counted of a pool, and when the last of them was read.
func (r *Recorder) gatewayOf(models []string) (at time.Time, all totals) {
	add := func(model string) {
		if g := r.gateways[model]; g != nil {
			if g.at.After(at) {
				at = g.at
			}
			all.firsts, all.lateFirsts = all.firsts+g.first.requests, all.lateFirsts+g.first.late
			all.answers, all.lateAnswers = all.answers+g.each.requests, all.lateAnswers+g.each.late
		}
	}
	add("")
	for _, m := range models {
		add(m)
	}
	return at, all
}
