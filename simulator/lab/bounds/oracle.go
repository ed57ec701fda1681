package bounds

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/lab/oracle"
	"github.com/tidefill/tidefill/simulator/report"
)

// oracleQuery asks oracles for the best result in one scenario with one seed.
type oracleQuery struct {
	scenario *compare.Scenario
	seed     uint64
	setup    simulator.Setup // with the first candidate's policy
	quiet    simulator.NoBatch
	seen     []oracle.PriorRun // the candidates' runs
	runs     int               // that a search may spend
	cache    *Cache            // nil: results are not kept
	// progress follows a search by its oracle's name.
	progress func(name string) (run simulator.Progress, finish func())
}

// searchingOracles lists the oracles that search by running the scenario many times.
var searchingOracles = []struct {
	name   string
	search func(q oracleQuery, budget oracle.Budget) (oracle.Finding, error)
}{
	{"E", func(q oracleQuery, budget oracle.Budget) (oracle.Finding, error) {
		return oracle.Engine(q.setup, q.quiet, budget)
	}},
	{"G", func(q oracleQuery, budget oracle.Budget) (oracle.Finding, error) {
		return oracle.Gateway(q.setup, q.quiet, q.seen, budget)
	}},
}

// runOracles computes the bounds of every scenario and seed. Those that need a search are left out
// unless Oracles is set.
func (c *Comparison) runOracles(ctx context.Context, sim compare.Simulated, into *Report) error {
	began := time.Now()
	progress := compare.NewProgress(c.Log, c.searchTime())
	defer progress.Stop()
	var jobs []compare.Job
	for i := range c.Scenarios {
		s := &c.Scenarios[i]
		for n, seed := range c.Seeds {
			q := oracleQuery{scenario: s, seed: seed,
				setup: s.With(seed, c.Candidates[0].Policy), quiet: sim.NoBatch[i][n],
				seen: c.priorRuns(&sim.Report.Scenarios[i], n), runs: c.searchRuns(s),
				cache: c.Cache}
			jobs = append(jobs, func(ctx context.Context) (err error) {
				var bounds []oracle.Bound
				if n < c.searchedSeeds() {
					q.progress = func(name string) (simulator.Progress, func()) {
						return search(ctx, progress, s, name, q.runs)
					}
					bounds, err = q.bounds()
				} else {
					bounds, err = deadlineBounds(q.setup, q.quiet)
				}
				if err != nil {
					return fmt.Errorf("seed %d: %w", seed, err)
				}
				into.Bounds[i].Seeds[n] = Seed{seed, bounds}
				return nil
			})
		}
	}
	if err := compare.Parallel(ctx, jobs); err != nil || !c.Oracles {
		return err
	}
	return progress.Summarize(time.Since(began))
}

// priorRuns returns the runs of all policies with the n-th seed.
func (c *Comparison) priorRuns(s *report.Scenario, n int) (seen []oracle.PriorRun) {
	for _, p := range s.Policies {
		if n >= len(p.Runs) {
			continue
		}
		k := slices.IndexFunc(c.Candidates, func(c compare.Candidate) bool {
			return c.Name == p.Name
		})
		seen = append(seen, oracle.PriorRun{Policy: c.Candidates[k].Policy, Result: p.Runs[n]})
	}
	return seen
}

// search follows an oracle, which calls run once for each of at most maxRuns runs. finish counts
// the runs that it did not need.
func search(
	ctx context.Context, p *compare.Progress, s *compare.Scenario, name string, maxRuns int,
) (run simulator.Progress, finish func()) {
	left := maxRuns
	run = func(float64) error {
		left--
		return p.Run(ctx, s, name)(1)
	}
	return run, func() { p.Skip(s, left) }
}

// bounds returns the bounds of all oracles. The runs seen are a lower bound of what can be reached
// from outside the engines.
func (q oracleQuery) bounds() ([]oracle.Bound, error) {
	var bounds []oracle.Bound
	for _, o := range searchingOracles {
		run, finish := q.progress("oracle " + o.name)
		found, cached, err := q.cache.get(o.name, q)
		if err == nil && !cached {
			found, err = o.search(q, oracle.Budget{Runs: q.runs, Progress: run})
			if err == nil {
				err = q.cache.put(o.name, q, found)
			}
		}
		if err != nil {
			return nil, err
		}
		if o.name == "G" { // the candidates may be better than a cached result
			found = found.AtLeast(q.seen)
			if found.Bound.Config, err = changedSettings(found.Policy); err != nil {
				return nil, err
			}
		}
		bounds = append(bounds, found.Bound)
		finish()
	}
	fluid, err := oracle.Fluid(q.setup)
	if err != nil {
		return nil, err
	}
	least, err := oracle.GPUHours(q.setup, q.quiet)
	if err != nil {
		return nil, err
	}
	return append(bounds, fluid, least), nil
}

// deadlineBounds returns which deadlines nobody could meet and the GPU hours that the others need.
// It takes no runs, so every report of deadlines has it. It returns nothing without deadlines.
func deadlineBounds(s simulator.Setup, quiet simulator.NoBatch) ([]oracle.Bound, error) {
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
