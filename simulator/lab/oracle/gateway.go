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

// Gateway is oracle G: the best known harvest that can be reached from outside the engines. It uses
// the daemon's own actuators and repeats the same scenario. It starts from prior runs, and searches
// for the schedule (flowcontrol's policy schedule) with the largest harvest at an allowed loss. A
// schedule sets, by window of time, the iteration time or the lines of a runner. It also sets the
// number of runners that carry lines, and the number of prompt tokens that may wait. Gateway
// searches for the best constants of the policy headroom, and for the best static setting, too. Its
// bound is at least the best of the prior runs. It is also at least the best static setting if the
// budget suffices to find it: about 13 runs, after up to five others.
func Gateway(
	s simulator.Setup, noBatch simulator.NoBatch, prior []PriorRun, budget Budget,
) (Finding, error) {
	g := newGatewaySearch(s, noBatch, budget)
	g.prior = prior
	if err := g.run(); err != nil {
		return Finding{}, fmt.Errorf("oracle G of %s: %w", s.Scenario.Name, err)
	}
	b := Bound{
		Name: "G", Useful: g.best.useful, Work: g.best.work, Loss: g.best.loss,
		Note: fmt.Sprintf("none of %d runs keeps the loss below a point", g.runs),
	}
	if b.Useful == 0 {
		return Finding{Bound: b}.AtLeast(prior), nil
	}
	what := fmt.Sprintf("%s set over %d windows of %v", g.best.family, len(g.best.level), g.window)
	switch g.best.family {
	case byLate:
		what = "late share and constants of headroom, set for the run"
	case byStatic:
		what = g.best.setting().String()
	}
	b.Note = fmt.Sprintf("%s, from %s, best of %d runs", what, g.best.from, g.runs)
	policy := g.best.policy(g.window)
	return Finding{Bound: b, Policy: &policy}.AtLeast(prior), nil
}

// AtLeast returns the finding, or the best allowed one of the prior runs if that harvested more.
func (f Finding) AtLeast(prior []PriorRun) Finding {
	for _, run := range prior {
		r := run.Result
		if r.Loss <= MaxLoss && float64(r.Batch.Useful) > f.Bound.Useful {
			f.Bound.Useful, f.Bound.Work, f.Bound.Loss = float64(r.Batch.Useful), r.Batch.Work,
				r.Loss
			f.Bound.Note = fmt.Sprintf("the run of policy %s, which no schedule beats", r.Flow)
			f.Policy = &run.Policy
		}
	}
	return f
}

// gatewaySearch searches for a schedule.
type gatewaySearch struct {
	setup   simulator.Setup
	noBatch simulator.NoBatch
	prior   []PriorRun
	budget  Budget
	runners int // of the first pool, at most
	rng     *rand.Rand
	window  time.Duration
	windows int
	runs    int
	best    schedule // of those allowed; its useful is 0 as long as there is none
	tried   []schedule
}

// maxWindows is the greatest number of windows of a schedule: with more, each is tried too seldom
// to learn anything about it.
const maxWindows = 60

func newGatewaySearch(s simulator.Setup, noBatch simulator.NoBatch, budget Budget) *gatewaySearch {
	window := max(20*time.Second, (s.Scenario.Horizon / maxWindows).Round(time.Second))
	if s.Scenario.Interactive.SLOWithheld { // an oracle knows what it is judged by
		slo, of := s.Scenario.Interactive.StrictestSLO(), &s.Policy.Flow.SLO
		of.TTFT, of.TPOT = slo.TTFT, slo.TPOT
	}
	s.Scenario.Pool.FactsWithheld = false
	return &gatewaySearch{
		setup: s, noBatch: noBatch, budget: budget, window: window,
		runners: max(s.Scenario.Pool.Replicas, s.Scenario.Pool.Max),
		windows: int((s.Scenario.Horizon + window - 1) / window),
		rng:     rand.New(rand.NewPCG(s.Seed, 0x6a7e)),
	}
}

// constant returns a schedule with the same settings in all windows, on all runners.
func (g *gatewaySearch) constant(f family, level, prompt float64) schedule {
	times := g.windows
	if f == byLate || f == byStatic {
		times = 1
	}
	return schedule{
		family: f, base: g.setup.Policy, from: "a constant level",
		level: slices.Repeat([]float64{level}, times), prompt: slices.Repeat([]float64{prompt},
			times),
	}.on(0)
}

// try runs a schedule, unless the budget is spent or nothing can be gained.
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

// record keeps the result of a schedule.
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

// errSpent ends a search because its budget is spent or nothing can be gained. It is no failure.
var errSpent = fmt.Errorf("the budget is spent")

func (g *gatewaySearch) run() error {
	g.adopt()
	// What a prior run did is worth imitating if it was nearly safe. If none was, the first task is
	// to find anything safe.
	steps := []func() error{g.imitate, g.staticFloor}
	if !slices.ContainsFunc(g.prior, func(run PriorRun) bool {
		return trialOf(run.Result).value() > 0
	}) {
		slices.Reverse(steps)
	}
	for _, step := range append(steps, g.uniform, g.pauses, g.unreserved, g.equalize, g.walk) {
		if err := step(); err == errSpent {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// adopt takes prior runs of the policy headroom as tried: they are starting points at no cost.
func (g *gatewaySearch) adopt() {
	for _, run := range g.prior {
		if _, is := run.Policy.Flow.Selected().(headroom.Config); is {
			t := g.constant(byLate, run.Policy.Flow.SLO.Late, maxPrompt)
			t.base, t.from = run.Policy, "a prior run of headroom"
			g.record(&t, run.Result)
		}
	}
}

// imitate makes a schedule of what the best prior run did, and scales it to where the loss is just
// allowed.
func (g *gatewaySearch) imitate() error {
	if len(g.prior) == 0 {
		return nil
	}
	best := g.prior[0]
	for _, run := range g.prior[1:] {
		if trialOf(run.Result).value() > trialOf(best.Result).value() {
			best = run
		}
	}
	low, high := 0.7, 1.5
	if trialOf(best.Result).value() == 0 { // far too much
		low, high = 0.1, 1
	}
	if static, is := g.staticOf(best.Policy); is {
		return g.scale(g.likeStatic(static), low, high, 4)
	}
	timeline := best.Result.Timeline
	if timeline == nil {
		r, err := g.runPolicy(best.Policy, simulator.Outputs{Timeline: true})
		if err != nil {
			return err
		}
		timeline = r.Timeline
	}
	t, known := scheduleOf(timeline, best.Policy, g.window, g.windows)
	if !known {
		return nil
	}
	t.from = "what " + best.Policy.Flow.Policy + " did"
	return g.scale(t, low, high, 4)
}

// likeStatic returns the schedule that does the same as a static setting.
func (g *gatewaySearch) likeStatic(s StaticSetting) schedule {
	t := g.constant(byLines, float64(s.Lines), maxPrompt).on(s.Runners)
	t.from = "the best of static settings"
	return t
}

// scale searches for the factor at which the loss is just allowed, by bisection.
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

// uniform searches for the constant level at which the loss is just allowed, in all families, with
// several bounds on prompts, and on as many runners as the best static setting has, on up to half
// of the budget.
func (g *gatewaySearch) uniform() error {
	half := g.budget.Runs / 2
	packed := 0
	if setting, some := g.bestSafeStatic(); some {
		packed = setting.Runners
		t := g.likeStatic(setting)
		times := 3
		if t.level[0] < 3 {
			times = 1 // there is no level between
		}
		if g.runs < half {
			if err := g.scale(t, 1, 1.5, times); err != nil {
				return err
			}
		}
	}
	for _, try := range []struct {
		family    family
		runners   int
		low, high float64
		prompt    float64
		times     int
	}{
		{byLate, 0, minLate, maxLate, maxPrompt, 5},
		{byTime, packed, minShare, 1.2, 1024, 5},
		{byTime, 0, minShare, 1.2, 4096, 5},
		{byLines, packed, 1, 256, 512, 6},
	} {
		times := try.times
		for low, high := try.low, try.high; times > 0; times-- {
			if g.runs >= half {
				return nil
			}
			level := (low + high) / 2
			switch try.family {
			case byLines:
				level = math.Round(math.Sqrt(low * high))
			case byLate:
				level = math.Sqrt(low * high)
			}
			t := g.constant(try.family, level, try.prompt).on(try.runners)
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

// unreserved tries the best schedule and the best settings of headroom with almost no KV cache
// reserved. An oracle knows the number of lines that fit. If that harvests more at too high a loss,
// it is scaled down to the allowed one.
func (g *gatewaySearch) unreserved() error {
	for _, of := range [][]family{{byTime}, {byLate}} {
		if t, some := g.bestOf(of...); some {
			t = t.clone()
			t.from += ", no KV kept free"
			own := flowcontrol.OwnConfig[headroom.Config](t.base.Flow, headroom.Name)
			reserve := &own.Tuning.Reserve
			reserve.KVUsed, reserve.KVDeviations = 0.95, 0
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

// equalize changes the best schedule towards the same number of late requests at all times, as many
// as are allowed: where they increase equally with the level, no other distribution harvests more.
// Which requests were late was also chance, so steps are short, and the mean of the later schedules
// is scaled to where the loss is just allowed.
func (g *gatewaySearch) equalize() error {
	t, some := g.bestOf(byTime, byLines)
	if !some {
		return nil
	}
	without := schedule{late: g.noBatch.LateByMinute()}
	// by minute
	allowed := float64(g.noBatch.Interactive.Requests) * MaxLoss / 100 /
		float64(max(1, len(without.late)))
	const (
		// of the logarithm by which a minute is off: late requests grow with about the tenth power
		// of the level
		follow = 0.08
		chance = 0.5 // of a late request in a minute
		most   = 0.12
		// factor of the steps each time that the loss crosses the allowed one
		calmer = 0.6
	)
	t.from += ", late ones spread evenly"
	mean := t.clone()
	rounds, size := max(4, g.budget.Runs/5), 1.0
	for round := range rounds {
		next := t.clone()
		for w := range next.level {
			late := max(0, t.lateIn(w, g.window)-without.lateIn(w, g.window))
			next.level[w] *= 1 +
				size*min(max(follow*portable.Log((allowed+chance)/(late+chance)), -most),
					most)
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
			mean.level[w] = (float64(kept)*mean.level[w] + t.level[w]) / float64(
				kept+1)
		}
	}
	return g.scale(mean, 0.92, 1.08, 4)
}
