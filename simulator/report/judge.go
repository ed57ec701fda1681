package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/oracle"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// SetGoals says what the scenario's policies are judged by.
func (s *Scenario) SetGoals(g scenario.Goals) { s.goals = g }

// cap is the law whose settings are the fixed caps.
const fixedCap = "fixed"

// Judge works out all figures that follow from the runs.
func (r *Report) Judge() {
	r.Version = Version
	for i := range r.Scenarios {
		r.Scenarios[i].figures()
	}
	r.markBest()
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		for k := range s.Policies {
			r.judge(s, &s.Policies[k])
		}
		s.collectWarnings()
	}
	r.overall()
}

// figures works out what needs no other scenario.
func (s *Scenario) figures() {
	best := s.best()
	for k := range s.Policies {
		p := &s.Policies[k]
		over := func(worse func(a, b float64) float64,
			value func(run *simulator.Result) float64) Figure {
			return p.over(worse, func(i int) float64 { return value(&p.Runs[i]) })
		}
		p.Loss = over(math.Max, func(r *simulator.Result) float64 { return r.Loss })
		p.WorstLoss = over(math.Max, func(r *simulator.Result) float64 { return r.WorstLoss })
		p.TTFTRatio = over(math.Max, func(r *simulator.Result) float64 {
			return ratio(r.Interactive.TTFT.P99, r.NoBatch.TTFT.P99)
		})
		p.TPOTRatio = over(math.Max, func(r *simulator.Result) float64 {
			return ratio(r.Interactive.TPOT.P99, r.NoBatch.TPOT.P99)
		})
		p.Useful = over(math.Min, func(r *simulator.Result) float64 {
			return float64(r.Batch.Useful)
		})
		p.Work = over(math.Min, func(r *simulator.Result) float64 { return r.Batch.Work })
		p.Wasted = over(math.Max, func(r *simulator.Result) float64 {
			return float64(r.Batch.Wasted) / float64(max(1, r.Batch.Wasted+r.Batch.Useful))
		})
		p.GPUHours = over(math.Max, gpuHours)
		p.Score = p.over(math.Min, func(i int) float64 {
			return simulator.Score(float64(p.Runs[i].Batch.Useful), best[i], p.Runs[i].Loss)
		})
		p.shares(s.Seeds)
		p.deadlines(s.Seeds)
	}
}

// over makes a figure of a value of each seed.
func (p *Policy) over(worse func(a, b float64) float64, value func(seed int) float64) Figure {
	if len(p.Runs) == 0 {
		return Figure{Number(math.NaN()), Number(math.NaN())}
	}
	sum, worst := 0.0, value(0)
	for i := range p.Runs {
		v := value(i)
		sum += v
		worst = worse(worst, v)
	}
	return Figure{Number(sum / float64(len(p.Runs))), Number(worst)}
}

func ratio(a, b float64) float64 {
	if !(b > 0) {
		return math.NaN()
	}
	return a / b
}

func gpuHours(r *simulator.Result) float64 { return r.GPUHours }

func batchGPUHours(r *simulator.Result) float64 { return r.GPUHours - r.NoBatchGPUHours }

// best is the harvest that scores are shares of, by seed: that of the strictest oracle there is on
// all seeds, else of the best run seen that cost no more than a point.
func (s *Scenario) best() []float64 {
	best := make([]float64, len(s.Seeds))
	for _, name := range []string{"E", "G", "F"} {
		known := len(s.Seeds) > 0
		for i, seed := range s.Seeds {
			b, ok := bound(seed.Oracles, name)
			best[i] = b.Useful
			known = known && ok && b.Useful > 0
		}
		if known {
			s.Best = "oracle " + name
			return best
		}
	}
	clear(best)
	s.Best = "the best run seen"
	for _, p := range s.Policies {
		for i, run := range p.Runs {
			if run.Loss <= oracle.MaxLoss {
				best[i] = max(best[i], float64(run.Batch.Useful))
			}
		}
	}
	return best
}

func bound(all []oracle.Bound, name string) (oracle.Bound, bool) {
	i := slices.IndexFunc(all, func(b oracle.Bound) bool { return b.Name == name })
	if i < 0 {
		return oracle.Bound{}, false
	}
	return all[i], true
}

func (p *Policy) shares(seeds []Seed) {
	p.Shares = nil
	if len(seeds) == 0 || len(p.Runs) != len(seeds) {
		return
	}
	for _, first := range seeds[0].Oracles {
		if first.Useful == 0 {
			continue
		}
		p.Shares = append(p.Shares, Share{first.Name, p.over(math.Min, func(i int) float64 {
			b, _ := bound(seeds[i].Oracles, first.Name)
			return ratio(float64(p.Runs[i].Batch.Useful), b.Useful)
		})})
	}
}

func (p *Policy) deadlines(seeds []Seed) {
	p.Feasible, p.Met, p.Infeasible = 0, 0, 0
	for i, run := range p.Runs {
		for _, j := range run.Jobs {
			if !due(j, run) {
				continue
			}
			if impossible(seeds[i], j.Name) {
				p.Infeasible++
				continue
			}
			p.Feasible++
			if j.Outcome == simulator.Finished {
				p.Met++
			}
		}
	}
}

// due reports whether a job's deadline falls within the run.
func due(j simulator.Job, run simulator.Result) bool {
	return j.Deadline > 0 && j.Deadline <= run.Hours*3600
}

// impossible reports whether an oracle knows that nobody could have met a job's deadline.
func impossible(s Seed, job string) bool {
	return slices.ContainsFunc(s.Oracles, func(b oracle.Bound) bool {
		return slices.Contains(b.Infeasible, job)
	})
}

// laws lists the laws of the baselines, in order.
func (s *Scenario) baselineFlows() []string {
	var laws []string
	for _, p := range s.Policies {
		if p.Baseline && !slices.Contains(laws, p.Flow) {
			laws = append(laws, p.Flow)
		}
	}
	return laws
}

// markBest finds each baseline law's best setting of each scenario, and its best single one.
func (r *Report) markBest() {
	type tally struct{ score, loss []float64 }
	single := map[string]*tally{} // by name
	var names []string
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		for _, law := range s.baselineFlows() {
			var best *Policy
			for k := range s.Policies {
				p := &s.Policies[k]
				if p.Flow != law {
					continue // of the same law, those asked for by name take part
				}
				if best == nil || better(p, best) {
					best = p
				}
				t := single[p.Name]
				if t == nil {
					t = &tally{}
					single[p.Name] = t
					names = append(names, p.Name)
				}
				t.score = append(t.score, float64(p.Score.Mean))
				t.loss = append(t.loss, float64(p.Loss.Worst))
			}
			best.BestHere = true
		}
	}
	champion := map[string]string{} // law: name
	standing := func(name string) (score, loss float64) {
		return simulator.GeometricMean(single[name].score), slices.Max(single[name].loss)
	}
	for _, name := range names {
		law, _, _ := strings.Cut(name, " ")
		rival, any := champion[law]
		if !any {
			champion[law] = name
			continue
		}
		score, loss := standing(name)
		other, otherLoss := standing(rival)
		if score > other || score == other && loss < otherLoss {
			champion[law] = name
		}
	}
	for i := range r.Scenarios {
		for k := range r.Scenarios[i].Policies {
			p := &r.Scenarios[i].Policies[k]
			p.BestOverall = champion[p.Flow] == p.Name
		}
	}
}

// better orders settings of a law: by score, then by how little they cost interactive users.
func better(a, b *Policy) bool {
	if a.Score.Mean != b.Score.Mean && a.Score.Mean.Known() {
		return !b.Score.Mean.Known() || a.Score.Mean > b.Score.Mean
	}
	return a.Loss.Worst < b.Loss.Worst
}

// speak gathers what must not be missed.
func (s *Scenario) collectWarnings() {
	s.Warnings = nil
	say := func(format string, args ...any) {
		s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
	}
	for _, seed := range s.Seeds {
		s.overloaded(fmt.Sprintf("without batch work, seed %d", seed.Seed), seed.NoBatch)
		s.compareOracles(seed)
	}
	for _, p := range s.Policies {
		for i, run := range p.Runs {
			if !p.Baseline {
				s.overloaded(fmt.Sprintf("%s, seed %d", p.Name, run.Seed), run.Interactive)
				for _, j := range run.Jobs {
					if j.Flagged > 0 && j.Outcome == simulator.Finished {
						say(
							"FALSE ALARM: %s called %s infeasible at %s, and finished it in time, on seed %d", p.Name, j.Name, minutes(j.Flagged), run.Seed)
					}
				}
			}
			for _, b := range s.Seeds[i].Oracles {
				if b.BeatenBy(float64(run.Batch.Useful), run.Loss) {
					say(
						"ORACLE %s IS WRONG: %s harvested %s of its %s tokens at %s points of loss on seed %d; a bound that is beaten is a bug of the oracle",
						b.Name, p.Name, percent(float64(run.Batch.Useful)/b.Useful), millions(
							b.Useful), fixed(run.Loss, 2), run.Seed)
				}
				if p.Feasible == p.Met && b.UndercutBy(gpuHours(&run)) {
					say(
						"ORACLE %s IS WRONG: %s met every deadline with %s GPU hours, and the bound is %s, on seed %d; a bound that is beaten is a bug of the oracle",
						b.Name, p.Name, fixed(gpuHours(&run), 1), fixed(b.GPUHours, 1), run.Seed)
				}
			}
		}
	}
}

// rank says which oracles are beaten by one that can do less: G attains what it says from outside
// the engines, E from inside, and F bounds them both.
func (s *Scenario) compareOracles(seed Seed) {
	for _, pair := range [][2]string{{"G", "E"}, {"G", "F"}, {"E", "F"}} {
		lesser, _ := bound(seed.Oracles, pair[0])
		if greater, known := bound(seed.Oracles, pair[1]); known && greater.BeatenBy(lesser.Useful,
			lesser.Loss) {
			s.Warnings = append(s.Warnings,
				fmt.Sprintf(
					"ORACLE %s IS WRONG: oracle %s harvested %s of its %s tokens at %s points of loss on seed %d; a bound that is beaten is a bug of the oracle",
					greater.Name, lesser.Name, percent(lesser.Useful/greater.Useful), millions(
						greater.Useful), fixed(lesser.Loss, 2), seed.Seed))
		}
	}
}

// mostOverloads are told of in a run; the others are in result.json.
const maxOverloads = 4

// overloaded says where requests waited ever longer, so that nobody takes the means of such a run
// for more than they are.
func (s *Scenario) overloaded(who string, in simulator.Interactive) {
	if len(in.Overload) == 0 {
		return
	}
	var spans []string
	for i, o := range in.Overload {
		if i == maxOverloads {
			spans = append(spans, fmt.Sprintf("and %d more spans", len(in.Overload)-i))
			break
		}
		spans = append(spans, fmt.Sprintf("%s from minute %s to %s", o.Replica, fixed(o.From/60, 1),
			fixed(o.To/60, 1)))
	}
	s.Warnings = append(s.Warnings, fmt.Sprintf(
		"OVERLOAD, %s: %s; means over such times grow as long as one looks and mean nothing", who,
		strings.Join(spans, ", ")))
}

func (r *Report) overall() {
	r.Overall = nil
	seen := map[string]bool{}
	for _, s := range r.Scenarios {
		for _, p := range s.Policies {
			if !seen[p.Name] {
				seen[p.Name] = true
				r.Overall = append(r.Overall, r.over(p.Name, func(s *Scenario) *Policy {
					return s.policy(p.Name)
				}))
			}
		}
	}
	laws := map[string]bool{}
	for _, s := range r.Scenarios {
		for _, law := range s.baselineFlows() {
			if !laws[law] {
				laws[law] = true
				r.Overall = append(r.Overall, r.over(law+", best of each scenario", func(
					s *Scenario) *Policy {
					return s.bestOf(law)
				}))
			}
		}
	}
}

// over sums a policy up, that may be another in each scenario.
func (r *Report) over(name string, of func(*Scenario) *Policy) Overall {
	o := Overall{Name: name, WorstLoss: Number(math.NaN())}
	var scores, caps, single []float64
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		p := of(s)
		if p == nil || len(p.Runs) == 0 {
			continue
		}
		o.Scenarios++
		o.Missed += p.Feasible - p.Met
		scores = append(scores, float64(p.Score.Mean))
		if !o.WorstLoss.Known() || p.Loss.Worst > o.WorstLoss {
			o.WorstLoss = p.Loss.Worst
		}
		for _, g := range p.Goals {
			o.Goals++
			if g.Met {
				o.GoalsMet++
			}
		}
		caps = append(caps, harvestOver(p, s.bestOf(fixedCap)))
		single = append(single, harvestOver(p, s.singleBest(fixedCap)))
	}
	o.Score = Number(simulator.Overall(scores, o.Missed > 0))
	o.OfCaps, o.OfCap = Number(simulator.GeometricMean(caps)),
		Number(simulator.GeometricMean(single))
	return o
}

// harvestOver is how many times another's harvest a policy has; NaN if that is nothing, or was
// taken at interactive users' cost.
func harvestOver(p, other *Policy) float64 {
	if other == nil || float64(other.Loss.Mean) > oracle.MaxLoss {
		return math.NaN()
	}
	return ratio(float64(p.Useful.Mean), float64(other.Useful.Mean))
}

func (s *Scenario) policy(name string) *Policy {
	i := slices.IndexFunc(s.Policies, func(p Policy) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Policies[i]
}

func (s *Scenario) bestOf(law string) *Policy {
	i := slices.IndexFunc(s.Policies, func(p Policy) bool { return p.Flow == law && p.BestHere })
	if i < 0 {
		return nil
	}
	return &s.Policies[i]
}

func (s *Scenario) singleBest(law string) *Policy {
	i := slices.IndexFunc(s.Policies, func(p Policy) bool { return p.Flow == law && p.BestOverall })
	if i < 0 {
		return nil
	}
	return &s.Policies[i]
}
