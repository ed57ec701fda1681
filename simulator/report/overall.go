package report

import (
	"math"
	"slices"

	"github.com/tidefill/tidefill/simulator"
)

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
	seenFlows := map[string]bool{}
	for _, s := range r.Scenarios {
		for _, flow := range s.baselineFlows() {
			if !seenFlows[flow] {
				seenFlows[flow] = true
				r.Overall = append(r.Overall, r.over(flow+", best of each scenario", func(
					s *Scenario) *Policy {
					return s.bestOf(flow)
				}))
			}
		}
	}
}

// over sums up a policy, which may be another in each scenario.
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
		if p.unsafe() {
			o.Unsafe++
		}
		scores = append(scores, float64(p.Score.Mean))
		if !o.WorstLoss.Known() || p.Loss.Worst > o.WorstLoss {
			o.WorstLoss = p.Loss.Worst
		}
		for _, g := range p.Goals {
			switch {
			case !g.Figure.Known():
				o.Unjudged++
			case g.Met:
				o.GoalsMet++
				fallthrough
			default:
				o.Goals++
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

// unsafe reports whether the policy costs too much attainment on one of the seeds.
func (p *Policy) unsafe() bool { return float64(p.Loss.Worst) > simulator.MaxLoss }

// harvestOver returns a policy's harvest relative to another's; NaN if either is unsafe, or the
// other's is 0.
func harvestOver(p, other *Policy) float64 {
	if other == nil || p.unsafe() || other.unsafe() {
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

func (s *Scenario) bestOf(flow string) *Policy {
	i := slices.IndexFunc(s.Policies, func(p Policy) bool { return p.Flow == flow && p.BestHere })
	if i < 0 {
		return nil
	}
	return &s.Policies[i]
}

func (s *Scenario) singleBest(flow string) *Policy {
	i := slices.IndexFunc(s.Policies, func(p Policy) bool {
		return p.Flow == flow && p.BestOverall
	})
	if i < 0 {
		return nil
	}
	return &s.Policies[i]
}
