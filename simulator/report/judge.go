package report

import (
	"math"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// SetGoals sets the scenario's goals.
func (s *Scenario) SetGoals(g scenario.Goals) { s.goals = g }

// fixedCap is the flow-control policy whose settings are the fixed caps.
const fixedCap = "fixed"

// Judge computes all figures that follow from the runs.
func (r *Report) Judge() {
	r.Version = Version
	for i := range r.Scenarios {
		r.Scenarios[i].figures()
	}
	r.markBest(func(s *Scenario, p *Policy) bool { return len(p.Runs) == len(s.Seeds) })
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		for k := range s.Policies {
			r.judge(s, &s.Policies[k])
		}
		s.conclude()
		s.collectWarnings()
	}
	r.overall()
}

// Lead marks the best settings of each baseline by the runs so far, which may be of fewer seeds
// than the others'. Judge marks only settings that ran with all seeds.
func (r *Report) Lead() {
	for i := range r.Scenarios {
		r.Scenarios[i].figures()
	}
	r.markBest(func(*Scenario, *Policy) bool { return true })
}

// figures computes what needs no other scenario.
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
		p.OfAlone = over(math.Min, func(r *simulator.Result) float64 {
			if r.Alone == nil {
				return math.NaN()
			}
			return r.OfAlone
		})
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
		scores := make([]float64, len(p.Runs))
		for i, run := range p.Runs {
			scores[i] = simulator.Score(float64(run.Batch.Useful), best[i], run.Loss)
		}
		p.Score = p.over(math.Min, func(i int) float64 { return scores[i] })
		p.Score.Mean = Number(simulator.MeanScore(scores))
		p.deadlines(&s.Additions)
	}
}

// over returns a figure of a value over the seeds.
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

// best returns by seed the harvest that scores are shares of: what the caller knows to be the best,
// or else that of the best run that cost at most one point.
func (s *Scenario) best() []float64 {
	if known := s.Additions.Best; len(known) > 0 && len(known) == len(s.Seeds) {
		s.Best = s.Additions.BestName
		return known
	}
	best := make([]float64, len(s.Seeds))
	s.Best = "the best run seen"
	for _, p := range s.Policies {
		for i, run := range p.Runs {
			if run.Loss <= simulator.MaxLoss {
				best[i] = max(best[i], float64(run.Batch.Useful))
			}
		}
	}
	return best
}

func (p *Policy) deadlines(known *Additions) {
	p.Feasible, p.Met, p.Infeasible = 0, 0, 0
	for i, run := range p.Runs {
		for _, j := range run.Jobs {
			if !Due(j, run) {
				continue
			}
			if known.infeasible(i, j.Name) {
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

// Due reports whether a job's deadline is within the run.
func Due(j simulator.Job, run simulator.Result) bool {
	return j.Deadline > 0 && j.Deadline <= run.Hours*3600
}

// baselineFlows lists the flow-control policies of the baselines, in order.
func (s *Scenario) baselineFlows() []string {
	var flows []string
	for _, p := range s.Policies {
		if p.Baseline && !slices.Contains(flows, p.Flow) {
			flows = append(flows, p.Flow)
		}
	}
	return flows
}

// markBest marks the best settings of each baseline policy, in each scenario and over all, among
// those that are complete.
func (r *Report) markBest(complete func(s *Scenario, p *Policy) bool) {
	type tally struct {
		score, loss []float64
		partial     bool // not complete in a scenario
	}
	single := map[string]*tally{} // by name
	var names []string
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		for _, flow := range s.baselineFlows() {
			var best *Policy
			for k := range s.Policies {
				p := &s.Policies[k]
				if p.Flow != flow {
					continue // policies asked for by name take part
				}
				p.BestHere = false
				t := single[p.Name]
				if t == nil {
					t = &tally{}
					single[p.Name] = t
					names = append(names, p.Name)
				}
				if !complete(s, p) {
					t.partial = true
					continue
				}
				if best == nil || better(p, best) {
					best = p
				}
				t.score = append(t.score, float64(p.Score.Mean))
				t.loss = append(t.loss, float64(p.Loss.Worst))
			}
			if best != nil {
				best.BestHere = true
			}
		}
	}
	best := map[string]string{} // name, by flow-control policy
	result := func(name string) (score, loss float64) {
		return simulator.Overall(single[name].score, false), slices.Max(single[name].loss)
	}
	for _, name := range names {
		if single[name].partial {
			continue
		}
		flow, _, _ := strings.Cut(name, " ")
		previous, found := best[flow]
		if !found {
			best[flow] = name
			continue
		}
		score, loss := result(name)
		other, otherLoss := result(previous)
		if betterScore(score, loss, other, otherLoss) {
			best[flow] = name
		}
	}
	for i := range r.Scenarios {
		for k := range r.Scenarios[i].Policies {
			p := &r.Scenarios[i].Policies[k]
			p.BestOverall = best[p.Flow] == p.Name
		}
	}
}

// better orders settings of a policy: by score, then by how little they cost interactive users.
func better(a, b *Policy) bool {
	return betterScore(float64(a.Score.Mean), float64(a.Loss.Worst), float64(b.Score.Mean),
		float64(b.Loss.Worst))
}

// betterScore reports whether the first score and loss are better. A score that is not known is not
// unsafe, so it is above the negative ones and below all others.
func betterScore(score, loss, other, otherLoss float64) bool {
	rank := func(score float64) float64 {
		if math.IsNaN(score) {
			return -math.SmallestNonzeroFloat64
		}
		return score
	}
	if a, b := rank(score), rank(other); a != b {
		return a > b
	}
	return loss < otherLoss
}
