package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/fit/profile"
	"github.com/tidefill/tidefill/simulator/report"
)

// runSpread runs the candidates that are not baselines, with the first seed, on engines whose cost
// model is at the edges of the profile's confidence intervals. The policies still get the cost
// model of the profile.
func (c *Comparison) runSpread(ctx context.Context, scenarios []report.Scenario) error {
	var jobs []Job
	for i := range c.Scenarios {
		s := &c.Scenarios[i]
		all := edges(s.profile)
		for _, edge := range all {
			jobs = append(jobs, func(ctx context.Context) error {
				return c.runEdge(ctx, s, edge, &scenarios[i])
			})
		}
		for k := range scenarios[i].Policies {
			if p := &scenarios[i].Policies[k]; !p.Baseline && len(all) > 0 {
				p.Spread = make([]report.SpreadRun, len(all)) // each job writes its own element
			}
		}
	}
	return Parallel(ctx, jobs)
}

// edge is a cost model at one end of the confidence intervals.
type edge struct {
	index int // in report.Policy.Spread
	name  string
	model costmodel.Model
	err   error // the model is invalid
}

// edges returns the cost models with all coefficients at their 5 % bounds, and at their 95 %
// bounds. The errors of the coefficients are correlated, so more than nine in ten fits lie between
// these models. A profile without bounds has none.
func edges(f profile.File) []edge {
	bounded := func(c profile.Coefficient) bool { return c.Low != 0 || c.High != 0 }
	if !slices.ContainsFunc(f.CostModel, bounded) {
		return nil
	}
	at := func(index int, name string, bound func(profile.Coefficient) float64) edge {
		moved := f
		moved.CostModel = slices.Clone(f.CostModel)
		for i, c := range moved.CostModel {
			if bounded(c) {
				moved.CostModel[i].Value = bound(c)
			}
		}
		p, err := moved.Profile()
		return edge{index, name, p.CostModel, err}
	}
	return []edge{
		at(0, "low", func(c profile.Coefficient) float64 { return c.Low }),
		at(1, "high", func(c profile.Coefficient) float64 { return c.High }),
	}
}

func (c *Comparison) runEdge(
	ctx context.Context, s *Scenario, at edge, into *report.Scenario,
) error {
	progress := func(float64) error { return ctx.Err() }
	moved := *s
	moved.Profile.CostModel = at.model
	put := func(name string, e report.SpreadRun) {
		e.CostModel = at.name
		i := slices.IndexFunc(into.Policies, func(p report.Policy) bool { return p.Name == name })
		into.Policies[i].Spread[at.index] = e
	}
	var quiet simulator.NoBatch
	invalid := at.err
	if invalid == nil {
		var err error
		quiet, err = simulator.RunNoBatch(moved.With(c.Seeds[0], c.Candidates[0].Policy), progress)
		if unfit := (*simulator.UnfitError)(nil); errors.As(err, &unfit) {
			invalid = err
		} else if err != nil {
			return err
		}
	}
	for _, candidate := range c.Candidates {
		switch {
		case candidate.Baseline:
		case invalid != nil:
			put(candidate.Name, report.SpreadRun{Fault: invalid.Error()})
		default:
			policy := candidate.Policy
			if !policy.Flow.Engine.CostModel.Known() {
				policy.Flow.Engine.CostModel = s.Profile.CostModel
			}
			result, err := simulator.RunAgainst(quiet, moved.With(c.Seeds[0], policy), progress)
			if err != nil {
				return fmt.Errorf("at the %s edge of the profile: %w", at.name, err)
			}
			put(candidate.Name, report.SpreadRun{Loss: result.Loss, Useful: result.Batch.Useful})
		}
	}
	return nil
}
