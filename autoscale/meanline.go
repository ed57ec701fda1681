package autoscale

import (
	"slices"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// Serves reports whether the pool can do the lines of a job, and the job may use it.
func (p *PoolState) Serves(j *plan.Demand) bool {
	return (p.Models == nil || j.Key.Model == "" || slices.Contains(p.Models, j.Key.Model)) &&
		(j.Pools == nil || slices.Contains(j.Pools, p.Name))
}

// shares reports whether there is a model that both pools serve.
func (p *PoolState) shares(q *PoolState) bool {
	return p.Models == nil || q.Models == nil || slices.ContainsFunc(p.Models, func(m string) bool {
		return slices.Contains(q.Models, m)
	})
}

// meanLine describes the mean of the lines left that a pool can do.
func meanLine(jobs []plan.Demand, p *PoolState) (mean Lines) {
	left := 0.0
	for i := range jobs {
		j := &jobs[i]
		if !p.Serves(j) {
			continue
		}
		n := float64(j.Lines)
		left += n
		mean.Mix.Prompt += n * j.Prompt
		mean.Mix.Output += n * j.Output
		mean.Work += j.Work
	}
	if left > 0 {
		mean.Mix.Prompt, mean.Mix.Output, mean.Work = mean.Mix.Prompt/left, mean.Mix.Output/left,
			mean.Work/left
	}
	return mean
}
