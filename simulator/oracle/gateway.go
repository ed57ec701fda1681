package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/headroom"
	"github.com/tidefill/tidefill/internal/portable"
	"github.com/tidefill/tidefill/simulator"
)

// Gateway is oracle G: the best that is known to be reached from outside the engines, with our own
// actuators, by someone who may tell the day again and again. It begins with what the policies did
// that were seen on that day, and searches for the timetable (flowcontrol's policy schedule) that
// harvests most at an allowed loss: how long iterations may take, or how many lines a runner
// carries, and how many prompt tokens may wait, from each window of time to the next; and for the
// constants of the policy probe that do. What it finds counts for no less than the best of the runs
// that were seen.
func Gateway(
	s simulator.Setup, quiet simulator.NoBatch, seen []PriorRun, budget Budget,
) (Finding, error) {
	g := newGatewaySearch(s, quiet, budget)
	if err := g.run(seen); err != nil {
		return Finding{}, fmt.Errorf("oracle G of %s: %w", s.Scenario.Name, err)
	}
	b := Bound{
		Name: "G", Useful: g.best.useful, Work: g.best.work, Loss: g.best.loss,
		Note: fmt.Sprintf("nothing of %d runs keeps the loss below a point", g.runs),
	}
	if b.Useful == 0 {
		return Finding{Bound: b}.AtLeast(seen), nil
	}
	what := fmt.Sprintf("%s set over %d windows of %v", g.best.family, len(g.best.level), g.window)
	if g.best.family == byLate {
		what = "late share and constants of probe set for the day"
	}
	b.Note = fmt.Sprintf("%s, from %s, best of %d runs", what, g.best.from, g.runs)
	policy := g.best.policy(g.window)
	return Finding{Bound: b, Policy: &policy}.AtLeast(seen), nil
}

// AtLeast is what was found, or the best allowed one of the runs that were seen if that harvested
// more.
func (f Finding) AtLeast(seen []PriorRun) Finding {
	for _, run := range seen {
		r := run.Result
		if r.Loss <= MaxLoss && float64(r.Batch.Useful) > f.Bound.Useful {
			f.Bound.Useful, f.Bound.Work, f.Bound.Loss = float64(r.Batch.Useful), r.Batch.Work,
				r.Loss
			f.Bound.Note = fmt.Sprintf("the run of policy %s, which no timetable beat", r.Flow)
			f.Policy = &run.Policy
		}
	}
	return f
}

// gatewaySearch looks for a timetable.
type gatewaySearch struct {
	setup   simulator.Setup
	noBatch simulator.NoBatch
	budget  Budget
	rng     *rand.Rand
	window  time.Duration
	windows int
	runs    int
	best    schedule // of those allowed; its useful is 0 as long as there is none
	tried   []schedule
}

// mostWindows is how many windows a timetable has at most: with more of them, each is told too
// seldom to learn anything of it.
const maxWindows = 60

func newGatewaySearch(s simulator.Setup, quiet simulator.NoBatch, budget Budget) *gatewaySearch {
	window := max(20*time.Second, (s.Scenario.Horizon / maxWindows).Round(time.Second))
	return &gatewaySearch{
		setup: s, noBatch: quiet, budget: budget, window: window,
		windows: int((s.Scenario.Horizon + window - 1) / window),
		rng:     rand.New(rand.NewPCG(s.Seed, 0x6a7e)),
	}
}

func (g *gatewaySearch) constant(f family, level, prompt float64) schedule {
	times := g.windows
	if f == byLate {
		times = 1
	}
	return schedule{
		family: f, base: g.setup.Policy, from: "a level for the day",
		level: slices.Repeat([]float64{level}, times), prompt: slices.Repeat([]float64{prompt},
			times),
	}
}

// tell runs a timetable, unless the budget is spent or nothing is left to be had.
func (g *gatewaySearch) try(t *schedule) error {
	r, err := g.runPolicy(t.policy(g.window), simulator.Outputs{})
	if err != nil {
		return err
	}
	g.record(t, r)
	return nil
}

func (g *gatewaySearch) runPolicy(
	p simulator.Policy, w simulator.Outputs,
) (simulator.Result, error) {
	if g.runs >= g.budget.Runs || g.best.exhausted {
		return simulator.Result{}, errSpent
	}
	s := g.setup
	s.Policy, s.Outputs = p, w
	r, err := simulator.RunAgainst(g.noBatch, s, func(float64) error { return nil })
	if err != nil {
		return r, err
	}
	g.runs++
	return r, g.budget.spent(g.runs)
}

// note keeps what became of a timetable.
func (g *gatewaySearch) record(t *schedule, r simulator.Result) {
	t.trial, t.late = trialOf(r), r.LateByMinute()
	g.tried = append(g.tried, *t)
	if t.allowed() && t.useful > g.best.useful {
		g.best = t.clone()
	}
}

func trialOf(r simulator.Result) trial {
	return trial{
		useful: float64(r.Batch.Useful), work: r.Batch.Work, loss: r.Loss,
		exhausted: !slices.ContainsFunc(r.Jobs, func(j simulator.Job) bool {
			return j.Outcome != simulator.Finished
		}),
	}
}

// errSpent ends a search, since there is no more to tell or to gain; it is no fault.
var errSpent = fmt.Errorf("the budget is spent")

func (g *gatewaySearch) run(seen []PriorRun) error {
	g.adopt(seen)
	for _, step := range []func() error{func() error {
		return g.imitate(seen)
	}, g.uniform, g.unreserved, g.equalize, g.walk} {
		if err := step(); err == errSpent {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// adopt takes what was seen of the policy probe for told: it is a point to go on from, at no run.
func (g *gatewaySearch) adopt(seen []PriorRun) {
	for _, run := range seen {
		if _, is := run.Policy.Flow.Selected().(headroom.Config); is {
			t := g.constant(byLate, run.Policy.Flow.SLO.Late, maxPrompt)
			t.base, t.from = run.Policy, "headroom as it was seen"
			g.record(&t, run.Result)
		}
	}
}

// imitate makes a timetable of what the best policy that was seen did, and scales it to where the
// loss is just allowed.
func (g *gatewaySearch) imitate(seen []PriorRun) error {
	if len(seen) == 0 {
		return nil
	}
	best := seen[0]
	for _, run := range seen[1:] {
		if trialOf(run.Result).value() > trialOf(best.Result).value() {
			best = run
		}
	}
	tape := best.Result.Timeline
	if tape == nil {
		r, err := g.runPolicy(best.Policy, simulator.Outputs{Timeline: true})
		if err != nil {
			return err
		}
		tape = r.Timeline
	}
	t, known := scheduleOf(tape, best.Policy, g.window, g.windows)
	if !known {
		return nil
	}
	t.from = "what " + best.Policy.Flow.Policy + " did"
	return g.scale(t, 0.7, 1.5, 4)
}

// scale closes in on the factor at which the loss is just allowed.
func (g *gatewaySearch) scale(t schedule, low, high float64, times int) error {
	for factor := 1.0; times > 0; times-- {
		scaled := t.scaled(factor)
		if err := g.try(&scaled); err != nil {
			return err
		}
		if scaled.allowed() {
			low = factor
		} else {
			high = factor
		}
		factor = math.Sqrt(low * high)
	}
	return nil
}

// uniform looks for the level at which the loss is just allowed, the same all day, in all families
// and with several bounds on prompts, on up to three eighths of the budget.
func (g *gatewaySearch) uniform() error {
	for _, try := range []struct {
		family    family
		low, high float64
		prompt    float64
		times     int
	}{
		{byLate, minLate, maxLate, maxPrompt, 5},
		{byTime, 0.4, 1.2, 1024, 5},
		{byLines, 1, 256, maxPrompt, 6},
		{byTime, 0.4, 1.2, 4096, 5},
		{byLines, 1, 256, 512, 6},
	} {
		times := try.times
		for low, high := try.low, try.high; times > 0; times-- {
			if g.runs >= 3*g.budget.Runs/8 {
				return nil
			}
			level := (low + high) / 2
			switch try.family {
			case byLines:
				level = math.Round(math.Sqrt(low * high))
			case byLate:
				level = math.Sqrt(low * high)
			}
			t := g.constant(try.family, level, try.prompt)
			if err := g.try(&t); err != nil {
				return err
			}
			if t.allowed() {
				low = level
			} else {
				high = level
			}
		}
	}
	return nil
}

// unreserved tries the best timetable and the best setting of probe with next to nothing of the KV
// cache kept free: how many lines fit, only one can know who has seen the day. Where that brings
// more at too high a loss, it is scaled down to the allowed one.
func (g *gatewaySearch) unreserved() error {
	for _, of := range [][]family{{byTime}, {byLate}} {
		if t, some := g.bestOf(of...); some {
			t = t.clone()
			t.from += ", no KV kept free"
			own := flowcontrol.OwnConfig[headroom.Config](t.base.Flow, headroom.Name)
			reserve := &own.Tuning.Reserve
			reserve.KVUsed, reserve.KVGrowth, reserve.KVDeviations = 0.95, 1, 0
			t.base.Flow = t.base.Flow.With(headroom.Name, own)
			before := t.useful
			if err := g.try(&t); err != nil {
				return err
			}
			if t.useful > before && !t.allowed() {
				if err := g.scale(t.scaled(0.95), 0.9, 1/0.95, 3); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// even moves the best timetable towards the same number of late requests at all times, as many as
// are allowed: where they grow alike with the level, no other spreading of them harvests more. What
// was late at a time was chance too, so steps are short, and it is the mean of the later ones that
// is scaled to where the loss is just allowed.
func (g *gatewaySearch) equalize() error {
	t, some := g.bestOf(byTime, byLines)
	if !some {
		return nil
	}
	quiet := schedule{late: g.noBatch.LateByMinute()}
	// by minute
	allowed := float64(g.noBatch.Interactive.Requests) * MaxLoss / 100 /
		float64(max(1, len(quiet.late)))
	const (
		// of the logarithm by which a minute is off: late requests grow with about the tenth power
		// of the level
		follow = 0.08
		chance = 0.5 // of a late request in a minute
		most   = 0.12
		// steps are, each time that the loss goes from one side of the allowed one to the other
		calmer = 0.6
	)
	t.from += ", late ones spread evenly"
	mean := t.clone()
	rounds, size := max(4, g.budget.Runs/5), 1.0
	for round := range rounds {
		next := t.clone()
		for w := range next.level {
			late := max(0, t.lateIn(w, g.window)-quiet.lateIn(w, g.window))
			next.level[w] *= 1 + portable.Rounded(
				size*min(max(follow*portable.Log((allowed+chance)/(late+chance)), -most),
					most))
			next.clamp(w)
		}
		if err := g.try(&next); err != nil {
			return err
		}
		if next.allowed() != t.allowed() {
			size *= calmer
		}
		t = next
		kept := max(0, round-rounds/2) // of the later ones, so many are in the mean already
		for w := range mean.level {
			mean.level[w] = (portable.Rounded(float64(kept)*mean.level[w]) + t.level[w]) / float64(
				kept+1)
		}
	}
	return g.scale(mean, 0.92, 1.08, 4)
}
