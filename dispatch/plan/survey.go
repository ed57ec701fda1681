package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Survey is what capacity planning needs to know, all of one instant.
type Survey struct {
	At   time.Time
	Jobs []Demand // those of Planner.Demand, in any order; see SortDemand
	// Pools lists the named pools once each, also if their runners serve different models or are
	// all gone, and the others as Planner.Pools does; by name.
	Pools   []PoolSurvey
	Runners []RunnerSurvey // by ID
}

// PoolSurvey is the part of a Survey about a pool.
type PoolSurvey struct {
	Name     string   // as in RunnerUp; of a pool without a name, the ID by which it is shown
	Named    bool     // it has a name
	Models   []string // sorted; of all runners of the pool
	InFlight int
	// Harvested is the work of the lines that the pool has answered, in milliseconds by
	// Config.Cost. It only grows.
	Harvested float64
}

// RunnerSurvey is the part of a Survey about a runner.
type RunnerSurvey struct {
	ID       string
	Pool     string    // as PoolSurvey.Name
	Models   []string  // sorted
	Since    time.Time // when it came
	InFlight int
	// Progress estimates the work done for the lines in flight, in milliseconds: their age, divided
	// by the requests that share the runner.
	Progress float64
	Open     bool // its breaker is open
	Draining bool
	Served   Served
}

// Served counts what a runner has computed for lines since it came. The numbers only grow.
type Served struct {
	Requests float64 // answered
	// PromptTokens and OutputTokens include those of lines in flight, as far as is known.
	// PromptTokens leaves out those found in the prefix cache.
	PromptTokens, OutputTokens float64
}

// Survey returns the state of all jobs, pools and runners for capacity planning.
func (p *Planner) Survey(now time.Time) Survey {
	s := Survey{At: now, Jobs: p.demand()}
	named := map[string]*PoolSurvey{}
	for name, harvested := range p.totals.harvested {
		named[name] = &PoolSurvey{Name: name, Named: true, Harvested: *harvested}
	}
	for _, pool := range p.pools {
		of := named[pool.name]
		if of == nil {
			of = &PoolSurvey{Name: pool.shownName(), Named: pool.name != "",
				Harvested: *pool.harvested}
		}
		of.Models = append(of.Models, pool.models...)
		of.InFlight += pool.inFlight
		if pool.name == "" {
			s.Pools = append(s.Pools, *of)
		} else {
			named[pool.name] = of
		}
	}
	for _, of := range named {
		slices.Sort(of.Models)
		of.Models = slices.Compact(of.Models)
		s.Pools = append(s.Pools, *of)
	}
	slices.SortFunc(s.Pools, func(a, b PoolSurvey) int {
		return cmp.Compare(a.Name, b.Name)
	})
	for _, id := range slices.Sorted(maps.Keys(p.runners)) {
		if r := p.runners[id]; r.pool != nil {
			s.Runners = append(s.Runners, r.survey(now))
		}
	}
	return s
}

// shownName returns the name of the pool or, if it has none, its ID.
func (p *pool) shownName() string { return cmp.Or(p.name, p.id) }

func (r *runner) survey(now time.Time) RunnerSurvey {
	return RunnerSurvey{ID: r.id, Pool: r.pool.shownName(), Models: r.models, Since: r.since,
		InFlight: r.inFlight, Progress: r.lines.progress(now, r.inFlight), Open: r.breaker.open,
		Draining: r.draining, Served: r.served.with(r.lines.unfinished())}
}

// progress estimates the work done for the lines in flight, in milliseconds.
func (u *inFlightLines) progress(now time.Time, inFlight int) float64 {
	var ages time.Duration
	for i := range u.lines {
		ages += now.Sub(u.lines[i].sent)
	}
	requests := float64(inFlight)
	if now.Sub(u.sample.at) <= longestDelay {
		requests = max(requests, u.sample.requests)
	}
	return float64(ages) / float64(time.Millisecond) / max(1, requests)
}

// unfinished returns what was computed for lines in flight.
func (u *inFlightLines) unfinished() (s Served) {
	for i := range u.lines {
		s = s.with(u.computedFor(&u.lines[i]))
	}
	return s
}

// computedFor returns what was computed for a line so far. It is no answered request.
func (u *inFlightLines) computedFor(l *inFlightLine) (s Served) {
	if l.computed {
		s.PromptTokens = float64(l.uncached)
	}
	if l.decoding {
		s.OutputTokens = float64(u.clock - l.since)
	}
	return s
}

func (s Served) with(more Served) Served {
	return Served{s.Requests + more.Requests, s.PromptTokens + more.PromptTokens,
		s.OutputTokens + more.OutputTokens}
}

// countServed counts a line that has ended on the runner, before it is removed from those in
// flight: its answer, or what was computed of it.
func (r *runner) countServed(f *Finished) {
	var s Served
	if i, found := r.lines.find(f.Start.number); found {
		s = r.lines.computedFor(&r.lines.lines[i])
	}
	if f.Outcome.good() {
		s.Requests = 1
		if f.InputTokens > 0 {
			s.PromptTokens = float64(max(0, f.InputTokens-f.CachedTokens))
		}
		s.OutputTokens = max(s.OutputTokens, float64(f.OutputTokens))
	}
	r.served = r.served.with(s)
}

// Totals are the counters that a planner continues from the one before it, in the same process. One
// planner at a time uses them.
type Totals struct {
	harvested map[string]*float64  // by the name of the pool
	spending  map[string]*spending // of fallbacks, by the name of the pool
}

// NewTotals returns counters that begin at 0.
func NewTotals() *Totals {
	return &Totals{harvested: map[string]*float64{}, spending: map[string]*spending{}}
}

// of returns the work that the pools of a name have answered, or a counter of its own for a pool
// without a name.
func (t *Totals) of(name string) *float64 {
	if name == "" {
		return new(float64)
	}
	if t.harvested[name] == nil {
		t.harvested[name] = new(float64)
	}
	return t.harvested[name]
}

// harvest counts the work of an answered line for the pool that its runner is in, or was in last.
// Without the usage of the answer it is what was expected.
func (p *Planner) harvest(f *Finished) {
	work := float64(f.Start.line.work)
	if f.InputTokens > 0 {
		work = p.cfg.Cost.Work(float64(f.InputTokens), float64(f.OutputTokens))
	}
	*f.Start.runner.harvested += work
}
