package bounds

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/lab/oracle"
	"github.com/tidefill/tidefill/simulator/report"
)

// addShares computes the harvest of each policy as a share of each oracle's. Policies that ran with
// fewer seeds than others have none.
func (b *Scenario) addShares(s *report.Scenario) {
	b.Shares = nil
	for k := range s.Policies {
		p := &s.Policies[k]
		if len(p.Runs) != len(b.Seeds) || len(b.Seeds) == 0 {
			continue
		}
		for _, first := range b.Seeds[0].Oracles {
			if first.Useful == 0 {
				continue
			}
			figure := b.over(first.Name, math.Min, func(seed int, o oracle.Bound) float64 {
				return ratio(float64(p.Runs[seed].Batch.Useful), o.Useful)
			})
			b.Shares = append(b.Shares, Share{p.Name, first.Name, figure})
		}
	}
}

// over returns the mean and the worst of a value over the seeds from the first on that have a bound
// of the oracle.
func (b *Scenario) over(
	name string, worse func(a, b float64) float64, value func(seed int, o oracle.Bound) float64,
) report.Figure {
	sum, worst, n := 0.0, math.NaN(), 0
	for i, seed := range b.Seeds {
		o, known := bound(seed.Oracles, name)
		if !known {
			break
		}
		v := value(i, o)
		if n++; n == 1 {
			worst = v
		}
		sum += v
		worst = worse(worst, v)
	}
	return report.Figure{Mean: report.Number(sum / float64(n)), Worst: report.Number(worst)}
}

func ratio(a, b float64) float64 {
	if !(b > 0) {
		return math.NaN()
	}
	return a / b
}

// additions returns what the bounds add to the report of the scenario.
func (b *Scenario) additions(s *report.Scenario) report.Additions {
	a := report.Additions{Figures: map[string]report.GoalFigures{},
		Tables: []report.Table{b.oracleTable(s), b.shareTable(s), b.spreadTable(s)}}
	a.BestName, a.Best = b.best()
	if slices.ContainsFunc(b.Seeds, func(s Seed) bool { return len(s.Oracles) > 0 }) {
		for _, seed := range b.Seeds {
			a.Infeasible = append(a.Infeasible, seed.infeasible())
		}
	}
	if len(b.Seeds) > 0 {
		for _, o := range b.Seeds[0].Oracles {
			a.Limits = append(a.Limits, report.Limit{Name: "oracle " + o.Name, Useful: o.Useful})
		}
	}
	for k := range s.Policies {
		p := &s.Policies[k]
		a.Figures[p.Name] = report.GoalFigures{
			"harvest_of_gateway": b.shareOf(p, "G"),
			"harvest_of_engine":  b.shareOf(p, "E"),
			"flagged_within":     b.flagged(p),
			"gpu_hours": b.ofLP(p, func(o oracle.Bound, r *simulator.Result) float64 {
				return ratio(r.GPUHours, o.GPUHours)
			}),
			"batch_gpu_hours": b.ofLP(p, func(o oracle.Bound, r *simulator.Result) float64 {
				return ratio(r.GPUHours-r.NoBatchGPUHours, o.BatchGPUHours)
			}),
		}
	}
	return a
}

// best returns the harvest of the strictest oracle that is known on all seeds.
func (b *Scenario) best() (name string, useful []float64) {
	for _, name := range []string{"E", "G", "F"} {
		useful = nil
		for _, seed := range b.Seeds {
			if o, known := bound(seed.Oracles, name); known && o.Useful > 0 {
				useful = append(useful, o.Useful)
			}
		}
		if len(useful) > 0 && len(useful) == len(b.Seeds) {
			return "oracle " + name, useful
		}
	}
	return "", nil
}

// infeasible returns the jobs whose deadlines no policy can meet.
func (s Seed) infeasible() []string {
	var jobs []string
	for _, o := range s.Oracles {
		jobs = append(jobs, o.Infeasible...)
	}
	return jobs
}

func (b *Scenario) shareOf(p *report.Policy, name string) report.GoalFigure {
	i := slices.IndexFunc(b.Shares, func(s Share) bool {
		return s.Policy == p.Name && s.Oracle == name
	})
	if i < 0 {
		return report.GoalFigure{Figure: math.NaN(),
			Note: fmt.Sprintf("oracle %s was not run; use --oracles", name)}
	}
	note := "mean"
	if len(p.Runs) > 1 {
		note = "mean; worst seed " + fixed(b.Shares[i].Worst, 3)
	}
	return report.GoalFigure{Figure: float64(b.Shares[i].Mean), Note: note}
}

// flagged returns the longest time until an infeasible job was reported as such, in seconds.
func (b *Scenario) flagged(p *report.Policy) report.GoalFigure {
	seconds, n := math.NaN(), 0
	for i, run := range p.Runs {
		impossible := b.Seeds[i].infeasible()
		for _, j := range run.Jobs {
			if !report.Due(j, run) || !slices.Contains(impossible, j.Name) {
				continue
			}
			n++
			if j.Flagged == 0 {
				return report.GoalFigure{Figure: math.NaN(), Note: fmt.Sprintf(
					"job %s was never flagged on seed %d", j.Name, run.Seed)}
			}
			if late := j.Flagged - j.Submitted; !(late <= seconds) {
				seconds = late
			}
		}
	}
	unasked := slices.ContainsFunc(b.Seeds, func(s Seed) bool {
		_, known := bound(s.Oracles, "LP")
		return !known
	})
	switch {
	case n > 0:
		return report.GoalFigure{Figure: seconds, Note: fmt.Sprintf("worst of %d", n)}
	case unasked:
		return report.GoalFigure{Figure: math.NaN(),
			Note: "no oracle reported an infeasible job; use --oracles"}
	}
	return report.GoalFigure{Note: "every job could be done in time"}
}

// ofLP returns a ratio to what oracle LP needs.
func (b *Scenario) ofLP(
	p *report.Policy, ratio func(o oracle.Bound, r *simulator.Result) float64,
) report.GoalFigure {
	figure := report.Figure{Mean: report.Number(math.NaN())}
	if len(p.Runs) > 0 {
		searched := Scenario{Seeds: b.Seeds[:len(p.Runs)]}
		figure = searched.over("LP", math.Max, func(seed int, o oracle.Bound) float64 {
			return ratio(o, &p.Runs[seed])
		})
	}
	if !figure.Mean.Known() {
		return report.GoalFigure{Figure: math.NaN(),
			Note: "oracle LP was not run, or has no figure; use --oracles"}
	}
	return report.GoalFigure{Figure: float64(figure.Mean),
		Note: "mean; worst seed " + fixed(figure.Worst, 3)}
}

func (b *Scenario) oracleTable(s *report.Scenario) report.Table {
	t := report.Table{Caption: "Oracles", Head: []string{"oracle", "seed", "harvest, M an hour",
		"loss, points", "GPU hours", ""}}
	for _, seed := range b.Seeds {
		for _, o := range seed.Oracles {
			harvest, hours := "–", "–"
			if o.Useful > 0 {
				harvest = fixed(report.Number(o.Useful/1e6/s.Hours), 2)
			}
			if o.GPUHours > 0 {
				hours = fixed(report.Number(o.GPUHours), 1)
			}
			t.Rows = append(t.Rows, []string{o.Name, strconv.FormatUint(seed.Seed, 10), harvest,
				fixed(report.Number(o.Loss), 2), hours, o.Note})
		}
	}
	return t
}

// shareTable has a row for each policy that was asked for by name.
func (b *Scenario) shareTable(s *report.Scenario) report.Table {
	t := report.Table{Caption: "Harvest as a share of an oracle's, mean and worst seed",
		Head: []string{"policy", "oracle", "share", "worst seed"}}
	for _, p := range s.Policies {
		if p.Baseline {
			continue
		}
		for _, share := range b.Shares {
			if share.Policy == p.Name {
				t.Rows = append(t.Rows, []string{p.Name, share.Oracle, fixed(share.Mean, 3),
					fixed(share.Worst, 3)})
			}
		}
	}
	return t
}

func (b *Scenario) spreadTable(s *report.Scenario) report.Table {
	t := report.Table{
		Caption: "With the engine's cost model at the edges of what was measured: all " +
			"coefficients at their 5 % or 95 % bounds",
		Head: []string{"with the profile's spread", "cost model", "loss, points",
			"harvest relative to the profile"},
	}
	for _, run := range b.Spread {
		loss, harvest := "no result: "+run.Fault, "–"
		i := slices.IndexFunc(s.Policies, func(p report.Policy) bool {
			return p.Name == run.Policy
		})
		if run.Fault == "" && i >= 0 {
			share := ratio(float64(run.Useful), float64(s.Policies[i].Runs[0].Batch.Useful))
			loss = fixed(report.Number(run.Loss), 2)
			harvest = fixed(report.Number(100*share), 1) + " %"
		}
		t.Rows = append(t.Rows, []string{run.Policy, run.CostModel, loss, harvest})
	}
	return t
}

// warnings returns warnings of bounds that a run exceeds, which are bugs of an oracle. The report
// must be judged.
func (b *Scenario) warnings(s *report.Scenario) (all []string) {
	say := func(format string, args ...any) {
		all = append(all, fmt.Sprintf(format, args...)+
			"; a bound that is beaten is a bug of the oracle")
	}
	for _, seed := range b.Seeds {
		// G controls the engines from outside, E from inside, and F bounds both.
		for _, pair := range [][2]string{{"G", "E"}, {"G", "F"}, {"E", "F"}} {
			lesser, _ := bound(seed.Oracles, pair[0])
			greater, known := bound(seed.Oracles, pair[1])
			if known && greater.BeatenBy(lesser.Useful, lesser.Loss) {
				say("ORACLE %s IS WRONG: oracle %s harvested %s of its %s tokens at %s points of "+
					"loss on seed %d", greater.Name, lesser.Name,
					percent(lesser.Useful/greater.Useful), millions(greater.Useful),
					fixed(report.Number(lesser.Loss), 2), seed.Seed)
			}
		}
	}
	for _, p := range s.Policies {
		for i, run := range p.Runs {
			for _, o := range b.Seeds[i].Oracles {
				useful := float64(run.Batch.Useful)
				if o.BeatenBy(useful, run.Loss) {
					say("ORACLE %s IS WRONG: %s harvested %s of its %s tokens at %s points of "+
						"loss on seed %d", o.Name, p.Name, percent(useful/o.Useful),
						millions(o.Useful), fixed(report.Number(run.Loss), 2), run.Seed)
				}
				if p.Feasible == p.Met && o.UndercutBy(run.GPUHours) {
					say("ORACLE %s IS WRONG: %s met every deadline with %s GPU hours, and the "+
						"bound is %s, on seed %d", o.Name, p.Name,
						fixed(report.Number(run.GPUHours), 1),
						fixed(report.Number(o.GPUHours), 1), run.Seed)
				}
			}
		}
	}
	return all
}

// fixed formats a number with a number of digits after the point; a dash if it is not known.
func fixed(v report.Number, digits int) string {
	if !v.Known() {
		return "–"
	}
	return strconv.FormatFloat(float64(v), 'f', digits, 64)
}

func percent(share float64) string { return fixed(report.Number(100*share), 1) + " %" }

func millions(tokens float64) string { return fixed(report.Number(tokens/1e6), 2) + " M" }
