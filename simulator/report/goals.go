package report

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// judge compares a policy with the scenario's goals. Where users or deadlines are affected, the
// worst seed counts; for shares of the best possible, the mean.
func (r *Report) judge(s *Scenario, p *Policy) {
	p.Goals = nil
	atMost := func(name string, asked, figure float64, note string) {
		if asked > 0 {
			p.goal(Goal{Name: name, Figure: Number(figure), Bound: Number(asked), Note: note})
		}
	}
	atLeast := func(name string, asked, figure float64, note string) {
		if asked > 0 {
			p.goal(Goal{Name: name, Figure: Number(figure), Bound: Number(asked), AtLeast: true,
				Note: note})
		}
	}
	harvest := func(name string, asked, figure float64, note string) {
		if p.unsafe() { // what users paid for
			figure, note = math.NaN(), fmt.Sprintf("the policy loses more than %d point on a seed",
				simulator.MaxLoss)
		}
		atLeast(name, asked, figure, note)
	}
	g := s.goals
	worst := "worst seed"
	if len(s.Seeds) == 1 {
		worst = ""
	}
	atMost(lossGoal, g.Loss, float64(p.Loss.Worst), worst)
	atMost("loss in the worst 5 minutes, points", g.Worst5Minutes, float64(p.WorstLoss.Worst),
		worst)
	atLeast("first class of flows, share of what it attains alone", g.OfAlone,
		float64(p.OfAlone.Worst), worst)
	p.judgeTTFT(g, worst)
	for i := range p.Goals {
		p.Goals[i].users = true
	}
	known := &s.Additions
	share, note := known.figure(p.Name, "harvest_of_gateway")
	harvest("harvest, share of oracle G", g.HarvestOfGateway, share, note)
	share, note = known.figure(p.Name, "harvest_of_engine")
	harvest("harvest, share of oracle E", g.HarvestOfEngine, share, note)
	share, note = s.ofCap(p)
	harvest("harvest, times the best fixed cap", g.HarvestOfCap, share, note)
	share, note = r.comparedHarvest(s, p)
	harvest("harvest, share of that in "+g.ComparedWith.Scenario, g.ComparedWith.Harvest, share,
		note)
	if g.Deadlines > 0 {
		share, note = math.NaN(), "no feasible deadline falls within the run"
		if p.Feasible > 0 {
			share, note = float64(p.Met)/float64(p.Feasible), fmt.Sprintf("%d of %d, all seeds",
				p.Met, p.Feasible)
		}
		atLeast(known.deadlines()+" met, share", g.Deadlines, share, note)
	}
	share, note = known.figure(p.Name, "flagged_within")
	atMost("infeasible jobs flagged after, seconds", g.FlaggedWithin.Seconds(), share, note)
	atMost("wasted, share of batch tokens", g.Wasted, float64(p.Wasted.Worst), worst)
	share, note = known.figure(p.Name, "gpu_hours")
	atMost("GPU hours, times the LP's", g.GPUHours, share, note)
	share, note = known.figure(p.Name, "batch_gpu_hours")
	atMost("GPU hours for batch work, times the LP's", g.BatchGPUHours, share, note)
}

// judgeTTFT judges the 99th percentile of TTFT on each seed: it may be so many times that without
// batch work, or so much longer.
func (p *Policy) judgeTTFT(g scenario.Goals, note string) {
	if g.TTFT == 0 {
		return
	}
	goal := Goal{Name: "TTFT p99, times no batch", Figure: p.TTFTRatio.Worst,
		Bound: Number(g.TTFT), Note: note}
	if above := milliseconds(g.TTFTAbove); above > 0 {
		goal.Name += fmt.Sprintf(", or %v ms above", above)
		goal.Met = goal.Figure.Known() &&
			!slices.ContainsFunc(p.Runs, func(run simulator.Result) bool {
				alone, with := run.NoBatch.TTFT.P99, run.Interactive.TTFT.P99
				return with > alone+above+rounding && ratio(with, alone) > g.TTFT+rounding
			})
	}
	p.goal(goal)
}

// lossGoal is the name of the goal that limits what batch work costs interactive users.
const lossGoal = "interactive loss, points"

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// rounding is the tolerance for a figure that equals its bound.
const rounding = 1e-9

// goal adds a verdict, which is that of the figure unless an alternative of the goal is met.
func (p *Policy) goal(g Goal) {
	if g.Figure.Known() && !g.Met {
		if g.AtLeast {
			g.Met = g.Figure >= g.Bound-rounding
		} else {
			g.Met = g.Figure <= g.Bound+rounding
		}
	}
	p.Goals = append(p.Goals, g)
}

func (s *Scenario) ofCap(p *Policy) (float64, string) {
	best := s.bestOf(fixedCap)
	switch {
	case best == nil:
		return math.NaN(), "no fixed cap was run; use --baselines"
	case best.unsafe():
		return math.NaN(), "no fixed cap keeps the loss within a point on all seeds"
	}
	return harvestOver(p, best), "mean; the best is " + best.Name
}

// comparedHarvest returns the harvest relative to the same policy's in another scenario.
func (r *Report) comparedHarvest(s *Scenario, p *Policy) (float64, string) {
	for i := range r.Scenarios {
		other := &r.Scenarios[i]
		if other.File == s.ComparedWith {
			if twin := other.policy(p.Name); twin != nil {
				return ratio(float64(p.Useful.Mean), float64(twin.Useful.Mean)),
					"mean; " + other.Name
			}
		}
	}
	return math.NaN(), "that scenario was not run, or not with this policy"
}
