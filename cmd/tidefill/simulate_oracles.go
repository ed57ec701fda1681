package main

import (
	"context"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/oracle"
)

// question is what oracles are asked about a day.
type question struct {
	story *story
	seed  uint64
	setup simulator.Setup // with the first policy
	quiet simulator.NoBatch
	seen  []oracle.PriorRun // runs of policies that the caller has told
	runs  int               // that a search may spend
	// shelf is where what was found is kept; nil: nowhere.
	shelf *shelf
	// progress follows a search by its name, run by run, until it is over.
	progress func(name string) (run simulator.Progress, over func())
}

// searched are the oracles that must search.
var searched = []struct {
	name string
	ask  func(q question, budget oracle.Budget) (oracle.Finding, error)
}{
	{"E", func(q question, budget oracle.Budget) (oracle.Finding, error) {
		return oracle.Engine(q.setup, q.quiet, budget)
	}},
	{"G", func(q question, budget oracle.Budget) (oracle.Finding, error) {
		return oracle.Gateway(q.setup, q.quiet, q.seen, budget)
	}},
}

// askOracles asks for the best that anyone could have done on a day. Runs that were seen are a
// floor for what could be done from outside the engines.
func askOracles(q question) ([]oracle.Bound, error) {
	var bounds []oracle.Bound
	for _, o := range searched {
		progress, over := q.progress("oracle " + o.name)
		found, known, err := q.shelf.find(o.name, q)
		if err == nil && !known {
			found, err = o.ask(q, oracle.Budget{Runs: q.runs, Progress: progress})
			if err == nil {
				err = q.shelf.keep(o.name, q, found)
			}
		}
		if err != nil {
			return nil, err
		}
		if o.name == "G" { // policies may have become better than what was found before
			found = found.AtLeast(q.seen)
			if found.Bound.Config, err = settingsOf(found.Policy); err != nil {
				return nil, err
			}
		}
		bounds = append(bounds, found.Bound)
		over()
	}
	flow, err := oracle.Fluid(q.setup)
	if err != nil {
		return nil, err
	}
	least, err := oracle.GPUHours(q.setup, q.quiet)
	if err != nil {
		return nil, err
	}
	return append(bounds, flow, least), nil
}

// askFeasible asks which deadlines nobody could meet, and what the others need at least: it takes
// no run, so that every report of deadlines knows.
func askFeasible(s simulator.Setup, quiet simulator.NoBatch) ([]oracle.Bound, error) {
	due := s.Scenario.JobStream.PerHour > 0
	for _, j := range s.Scenario.Jobs {
		due = due || j.Window > 0
	}
	if !due {
		return nil, nil
	}
	least, err := oracle.GPUHours(s, quiet)
	return []oracle.Bound{least}, err
}

// question is that about one story and seed, with what the policies did there.
func (r *race) question(
	ctx context.Context, s *story, seed uint64, quiet simulator.NoBatch, seen []oracle.PriorRun,
	progress *tally,
) question {
	return question{
		story: s, seed: seed, setup: s.on(seed, r.field[0].policy), quiet: quiet, seen: seen,
		runs: r.searches(s), shelf: r.shelf,
		progress: func(name string) (simulator.Progress, func()) {
			return progress.search(ctx, s, name, r.searches(s))
		},
	}
}
