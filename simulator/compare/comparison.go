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
	// Unfit compares policies in scenarios, too, that miss their objectives without batch work.
	// Else these are an error.
	Unfit bool
	// Runs keeps finished runs. Nil: they are not kept.
	Runs *Runs
	// Timelines records the timelines of the run without batch work and of the candidates that are
	// not baselines, with the first seed, for the charts of the report.
	Timelines bool
	// Events is a directory for logs of every decision of the first candidate with the first seed.
	// Empty: none are written.
	Events string
	// Log takes progress. Nil: no progress is reported.
	Log io.Writer
}

// Run returns the judged report.
func (c *Comparison) Run(ctx context.Context) (report.Report, error) {
	s, err := c.Simulate(ctx)
	if err != nil {
		return report.Report{}, err
	}
	s.Report.Judge()
	return s.Report, nil
}

// Simulated holds the runs of a comparison.
type Simulated struct {
	Report  report.Report         // not judged
	NoBatch [][]simulator.NoBatch // by scenario and seed
}

// Simulate runs the candidates. The caller may add to the report before it is judged.
func (c *Comparison) Simulate(ctx context.Context) (Simulated, error) {
	logs, err := c.openEventLogs()
	if err != nil {
		return Simulated{}, err
	}
	result, err := c.simulate(ctx, func(s *Scenario, k Candidate, seed uint64) simulator.Outputs {
		first := seed == c.Seeds[0]
		out := simulator.Outputs{Timeline: c.Timelines && !k.Baseline && first}
		if log := logs[s.File]; log != nil && k.Name == c.Candidates[0].Name && first {
			out.Events = log
		}
		return out
	})
	return result, errors.Join(err, logs.close())
}

// outputs returns what to record of a run in addition to its figures.
type outputs func(s *Scenario, c Candidate, seed uint64) simulator.Outputs

func (c *Comparison) simulate(ctx context.Context, outputs outputs) (Simulated, error) {
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
			return Simulated{}, err
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
		return Simulated{}, err
	}
	if err := quiet.err(); err != nil {
		return Simulated{}, err
	}
	for i := range result.Scenarios {
		for n := range c.Seeds {
			seed := &result.Scenarios[i].Seeds[n]
			seed.NoBatch, seed.Timeline = quiet.runs[i][n].Interactive, quiet.runs[i][n].Timeline
		}
	}
	quiet.compare(&result)
	if err := c.race(ctx, quiet, &result, progress, outputs); err != nil {
		return Simulated{}, err
	}
	return Simulated{result, quiet.runs}, progress.Summarize(time.Since(began))
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

// duration returns the simulated time of all runs but for those that a race adds.
func (c *Comparison) duration() time.Duration {
	var total time.Duration
	for _, s := range c.Scenarios {
		runs := len(c.Seeds) // without batch work
		for _, candidate := range c.Candidates {
			if candidate.appliesTo(&s) {
				runs += c.firstSeeds(candidate)
			}
		}
		total += s.Scenario.Horizon * time.Duration(runs)
	}
	return total
}
