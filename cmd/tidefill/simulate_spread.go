package main

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

// spread runs the policies that were asked for, on the first seed, with engines whose law lies at
// the edges of what the profile's measurements allow. The policies are told the profile's law as
// before.
func (r *race) spread(ctx context.Context, scenarios []report.Scenario) error {
	var jobs []func(context.Context) error
	for i := range r.stories {
		s := &r.stories[i]
		for _, edge := range edges(s.profile) {
			jobs = append(jobs, func(ctx context.Context) error {
				return r.atEdge(ctx, s, edge, &scenarios[i])
			})
		}
	}
	// Each edge writes to a place of its own.
	for i := range scenarios {
		if n := len(edges(r.stories[i].profile)); n > 0 {
			for k := range scenarios[i].Policies {
				if p := &scenarios[i].Policies[k]; !p.Baseline {
					p.Spread = make([]report.SpreadRun, n)
				}
			}
		}
	}
	return parallel(ctx, jobs)
}

// edge is a law that the measurements allow.
type edge struct {
	place int
	name  string
	law   costmodel.Model
	fault error
}

// edges are the laws with all coefficients at their 5 % bounds, and at their 95 % bounds. The
// coefficients' errors hang together, so these lie further out than nine in ten fits would. A
// profile without bounds has none.
func edges(f profile.File) []edge {
	bounded := func(c profile.Coefficient) bool { return c.Low != 0 || c.High != 0 }
	if !slices.ContainsFunc(f.CostModel, bounded) {
		return nil
	}
	at := func(place int, name string, bound func(profile.Coefficient) float64) edge {
		moved := f
		moved.CostModel = slices.Clone(f.CostModel)
		for i, c := range moved.CostModel {
			if bounded(c) {
				moved.CostModel[i].Value = bound(c)
			}
		}
		p, err := moved.Profile()
		return edge{place, name, p.CostModel, err}
	}
	return []edge{
		at(0, "low", func(c profile.Coefficient) float64 { return c.Low }),
		at(1, "high", func(c profile.Coefficient) float64 { return c.High }),
	}
}

func (r *race) atEdge(ctx context.Context, s *story, at edge, into *report.Scenario) error {
	progress := func(float64) error { return ctx.Err() }
	moved := *s
	moved.Profile.CostModel = at.law
	put := func(name string, e report.SpreadRun) {
		e.CostModel = at.name
		i := slices.IndexFunc(into.Policies, func(p report.Policy) bool { return p.Name == name })
		into.Policies[i].Spread[at.place] = e
	}
	var quiet simulator.NoBatch
	fault := at.fault
	if fault == nil {
		var err error
		quiet, err = simulator.RunNoBatch(moved.on(r.seeds[0], r.field[0].policy), progress)
		if unfit := (*simulator.UnfitError)(nil); errors.As(err, &unfit) {
			fault = err
		} else if err != nil {
			return err
		}
	}
	for _, c := range r.field {
		switch {
		case c.baseline:
		case fault != nil:
			put(c.name, report.SpreadRun{Fault: fault.Error()})
		default:
			policy := c.policy
			if !policy.Flow.Engine.CostModel.Known() {
				policy.Flow.Engine.CostModel = s.Profile.CostModel
			}
			result, err := simulator.RunAgainst(quiet, moved.on(r.seeds[0], policy), progress)
			if err != nil {
				return fmt.Errorf("at the %s edge of the profile: %w", at.name, err)
			}
			put(c.name, report.SpreadRun{Loss: result.Loss, Useful: result.Batch.Useful})
		}
	}
	return nil
}
