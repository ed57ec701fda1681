package compare

import (
	"context"
	"slices"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/report"
)

// firstSeeds is the number of seeds that a candidate runs with before its policy's best settings
// are known.
func (c *Comparison) firstSeeds(candidate Candidate) int {
	if candidate.Variant {
		return 1
	}
	return len(c.Seeds)
}

// race runs the best settings of each baseline with the other seeds, until those that are the best
// by all their runs have run with all seeds. Most settings are far from the best on the first seed,
// and cost as much time as the best.
func (c *Comparison) race(
	ctx context.Context, quiet *quietRuns, r *report.Report, progress *Progress, outputs outputs,
) error {
	for {
		var jobs []Job
		r.Lead()
		for i := range r.Scenarios {
			s := &r.Scenarios[i]
			for k := range s.Policies {
				p := &s.Policies[k]
				done := len(p.Runs)
				if !p.BestHere && !p.BestOverall || done == len(c.Seeds) {
					continue
				}
				p.Runs = append(p.Runs, make([]simulator.Result, len(c.Seeds)-done)...)
				progress.expect(&c.Scenarios[i], len(c.Seeds)-done)
				at := slices.IndexFunc(c.Candidates, func(c Candidate) bool {
					return c.Name == p.Name
				})
				jobs = append(jobs, c.candidateJobs(&c.Scenarios[i], c.Candidates[at], done,
					quiet, p.Runs, progress, outputs)...)
			}
		}
		if len(jobs) == 0 {
			return nil
		}
		if err := Parallel(ctx, jobs); err != nil {
			return err
		}
		quiet.compare(r)
	}
}
