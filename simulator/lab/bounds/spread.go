package bounds

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/fit/profile"
)

// SpreadRun is a result of a policy with another cost model of the engine.
type SpreadRun struct {
	Policy    string `json:"policy"`
	CostModel string `json:"cost_model"` // low or high: all coefficients at their 5 or 95 % bounds
	// Fault is why there is no result.
	Fault  string  `json:"fault,omitempty"`
	Loss   float64 `json:"loss_points"`
	Useful int64   `json:"useful_tokens"`
}

// runSpread runs the candidates that are not baselines, with the first seed, on engines whose cost
// model is at the edges of the profile's confidence intervals. The policies still get the cost
// model of the profile.
func (c *Comparison) runSpread(ctx context.Context, into *Report) error {
	var asked []compare.Candidate
	for _, candidate := range c.Candidates {
		if !candidate.Baseline {
			asked = append(asked, candidate)
		}
	}
	var jobs []compare.Job
	for i := range c.Scenarios {
		s := &c.Scenarios[i]
		all := edges(s.Fitted)
		spread := make([]SpreadRun, len(asked)*len(all)) // by candidate and edge
		into.Bounds[i].Spread = spread
		for k, at := range all {
			jobs = append(jobs, func(ctx context.Context) error {
				runs, err := c.runEdge(ctx, s, at, asked)
				for n, run := range runs {
					spread[n*len(all)+k] = run
				}
				return err
			})
		}
	}
	return compare.Parallel(ctx, jobs)
}

// edge is a cost model at one end of the confidence intervals.
type edge struct {
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
	at := func(name string, bound func(profile.Coefficient) float64) edge {
		moved := f
		moved.CostModel = slices.Clone(f.CostModel)
		for i, c := range moved.CostModel {
			if bounded(c) {
				moved.CostModel[i].Value = bound(c)
			}
		}
		p, err := moved.Profile()
		return edge{name, p.CostModel, err}
	}
	return []edge{
		at("low", func(c profile.Coefficient) float64 { return c.Low }),
		at("high", func(c profile.Coefficient) float64 { return c.High }),
	}
}

// runEdge runs candidates on engines with the cost model of an edge.
func (c *Comparison) runEdge(
	ctx context.Context, s *compare.Scenario, at edge, candidates []compare.Candidate,
) (runs []SpreadRun, err error) {
	progress := func(float64) error { return ctx.Err() }
	moved := *s
	moved.Profile.CostModel = at.model
	var quiet simulator.NoBatch
	invalid := at.err
	if invalid == nil {
		quiet, err = simulator.RunNoBatch(moved.With(c.Seeds[0], candidates[0].Policy), progress)
		if unfit := (*simulator.UnfitError)(nil); errors.As(err, &unfit) {
			invalid = err
		} else if err != nil {
			return nil, err
		}
	}
	for _, candidate := range candidates {
		run := SpreadRun{Policy: candidate.Name, CostModel: at.name}
		if invalid != nil {
			run.Fault = invalid.Error()
			runs = append(runs, run)
			continue
		}
		policy := candidate.Policy
		if !policy.Flow.Engine.CostModel.Known() {
			policy.Flow.Engine.CostModel = s.Profile.CostModel
		}
		result, err := simulator.RunAgainst(quiet, moved.With(c.Seeds[0], policy), progress)
		if err != nil {
			return nil, fmt.Errorf("at the %s edge of the profile: %w", at.name, err)
		}
		run.Loss, run.Useful = result.Loss, result.Batch.Useful
		runs = append(runs, run)
	}
	return runs, nil
}
