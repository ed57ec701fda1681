package compare

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/report"
)

// Comparison runs candidates in every scenario with every seed, and each scenario without batch
// work. Of the settings of a baseline that nobody published, those that are not its policy's best
// run with the first seed only. Runs go in parallel; the results do not depend on their order.
type Comparison struct {
	Scenarios  []Scenario
	Seeds      []uint64
	Candidates []Candidate
	// Oracles searches for the best result that any policy could have reached.
	Oracles bool
	// OracleSeeds is how many seeds, from the first, are searched. 0: all.
	OracleSeeds int
	// OracleRuns is how many runs an oracle may spend on a scenario of one hour. Longer scenarios
	// get fewer.
	OracleRuns int
	// Cache keeps the results of oracles. Nil: they are not kept.
	Cache *Cache
	// Runs keeps the other runs. Nil: they are not kept.
	Runs *Runs
	// Spread also runs the candidates that are not baselines with the engines at the edges of the
	// profile's confidence intervals.
	Spread bool
	// Timelines records the timelines of the candidates that are not baselines, with the first
	// seed, for the charts of the report.
	Timelines bool
	// Events is a directory for logs of every decision of the first candidate with the first seed.
	// Empty: none are written.
	Events string
	// Log takes progress. Nil: no progress is reported.
	Log io.Writer
}

// Run returns the judged report.
func (c *Comparison) Run(ctx context.Context) (report.Report, error) {
	logs, err := c.openEventLogs()
	if err != nil {
		return report.Report{}, err
	}
	result, err := c.compare(ctx, func(s *Scenario, k Candidate, seed uint64) simulator.Outputs {
		first := seed == c.Seeds[0]
		out := simulator.Outputs{Timeline: c.Timelines && !k.Baseline && first}
		if log := logs[s.File]; log != nil && k.Name == c.Candidates[0].Name && first {
			out.Events = log
		}
		return out
	})
	if err = errors.Join(err, logs.close()); err != nil {
		return report.Report{}, err
	}
	if c.Spread {
		if err := c.runSpread(ctx, result.Scenarios); err != nil {
			return report.Report{}, err
		}
	}
	result.Judge()
	return result, nil
}

// outputs returns what to record of a run in addition to its figures.
type outputs func(s *Scenario, c Candidate, seed uint64) simulator.Outputs

// compare runs everything but the spread. The report is not judged.
func (c *Comparison) compare(ctx context.Context, outputs outputs) (report.Report, error) {
	began := time.Now()
	progress := NewProgress(c.Log, c.duration())
	defer progress.Stop()
	result := report.Report{Scenarios: make([]report.Scenario, len(c.Scenarios))}
	quiet, jobs := c.quietJobs(progress)
	for i := range c.Scenarios {
		s, into := &c.Scenarios[i], &result.Scenarios[i]
		*into = s.newReport(c.Seeds)
		var err error
		if into.Traffic, err = s.traffic(c.Seeds[0]); err != nil {
			return report.Report{}, err
		}
		for _, candidate := range c.Candidates {
			if candidate.appliesTo(s) {
				runs := make([]simulator.Result, c.firstSeeds(candidate))
				into.Policies = append(into.Policies, report.Policy{Name: candidate.Name,
					Flow: candidate.Family, Settings: candidate.Settings,
					Baseline: candidate.Baseline, Runs: runs})
				jobs = append(jobs, c.candidateJobs(s, candidate, 0, quiet, runs, progress,
					outputs)...)
			}
		}
	}
	if err := Parallel(ctx, jobs); err != nil {
		return report.Report{}, err
	}
	if err := quiet.err(); err != nil {
		return report.Report{}, err
	}
	for i := range result.Scenarios {
		for n := range c.Seeds {
			result.Scenarios[i].Seeds[n].NoBatch = quiet.runs[i][n].Interactive
		}
	}
	quiet.compare(&result)
	if err := c.race(ctx, quiet, &result, progress, outputs); err != nil {
		return report.Report{}, err
	}
	if err := c.runOracles(ctx, quiet.runs, result.Scenarios, progress); err != nil {
		return report.Report{}, err
	}
	return result, progress.summarize(time.Since(began))
}

// candidateJobs returns one job for each run in into, which has one for each seed, from seed from
// on. They do nothing once a pool has missed its objectives without batch work.
func (c *Comparison) candidateJobs(
	s *Scenario, candidate Candidate, from int, quiet *quietRuns, into []simulator.Result,
	progress *Progress, outputs outputs,
) []Job {
	var jobs []Job
	for n := from; n < len(into); n++ {
		seed := c.Seeds[n]
		jobs = append(jobs, func(ctx context.Context) (err error) {
			if quiet.failed.Load() {
				return nil
			}
			setup := s.With(seed, candidate.Policy)
			setup.Outputs = outputs(s, candidate, seed)
			into[n], err = c.Runs.runBatch(ctx, s, candidate, setup, progress)
			return err
		})
	}
	return jobs
}

// duration returns the simulated time of all runs if every oracle spends all its runs, but for
// those that a race adds.
func (c *Comparison) duration() time.Duration {
	var total time.Duration
	for _, s := range c.Scenarios {
		runs := len(c.Seeds) // without batch work
		for _, candidate := range c.Candidates {
			if candidate.appliesTo(&s) {
				runs += c.firstSeeds(candidate)
			}
		}
		if c.Oracles {
			runs += c.oracleSeeds() * len(searchingOracles) * c.searchRuns(&s)
		}
		total += s.Scenario.Horizon * time.Duration(runs)
	}
	return total
}

// minSearchRuns is the number of runs below which the search of an oracle finds nothing useful.
const minSearchRuns = 12

// searchRuns returns how many runs an oracle may spend on a scenario: fewer for a longer one.
func (c *Comparison) searchRuns(s *Scenario) int {
	return min(c.OracleRuns, max(minSearchRuns,
		int(float64(c.OracleRuns)/s.Scenario.Horizon.Hours())))
}
