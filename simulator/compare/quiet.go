package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/report"
)

// quietRuns holds the runs of all scenarios and seeds without batch work.
type quietRuns struct {
	runs   [][]simulator.NoBatch // by scenario and seed
	unfit  [][]error             // objectives missed without batch work
	failed atomic.Bool           // a run is unfit, so the runs with batch work are not needed
}

// err reports all pools that miss their objectives without batch work.
func (q *quietRuns) err() error {
	return errors.Join(slices.Concat(q.unfit...)...)
}

// compare compares all runs of a report with those without batch work.
func (q *quietRuns) compare(r *report.Report) {
	for i := range r.Scenarios {
		for _, p := range r.Scenarios[i].Policies {
			for n := range p.Runs {
				p.Runs[n].Compare(q.runs[i][n])
			}
		}
	}
}

// NoBatch runs all scenarios and seeds without batch work. The results are by scenario and seed.
func (c *Comparison) NoBatch(
	ctx context.Context, progress *Progress,
) ([][]simulator.NoBatch, error) {
	quiet, jobs := c.quietJobs(progress)
	err := Parallel(ctx, jobs)
	return quiet.runs, errors.Join(err, quiet.err())
}

// quietJobs returns a job for each scenario and seed. A pool that misses its objectives does not
// stop the jobs: call err after all of them have finished.
func (c *Comparison) quietJobs(progress *Progress) (*quietRuns, []Job) {
	q := &quietRuns{runs: make([][]simulator.NoBatch, len(c.Scenarios)),
		unfit: make([][]error, len(c.Scenarios))}
	var jobs []Job
	for i := range c.Scenarios {
		s := &c.Scenarios[i]
		q.runs[i], q.unfit[i] = make([]simulator.NoBatch, len(c.Seeds)), make([]error, len(c.Seeds))
		for n, seed := range c.Seeds {
			jobs = append(jobs, func(ctx context.Context) (err error) {
				setup := s.With(seed, c.Candidates[0].Policy)
				setup.Outputs.Timeline = c.Timelines && n == 0
				q.runs[i][n], err = c.Runs.runNoBatch(ctx, s, setup, progress)
				if missed := (*simulator.UnfitError)(nil); errors.As(err, &missed) {
					if c.Unfit {
						return nil
					}
					q.unfit[i][n] = fmt.Errorf("seed %d: %w", seed, err)
					q.failed.Store(true)
					return nil
				}
				return err
			})
		}
	}
	return q, jobs
}
