package simulator

import (
	"slices"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/dispatch/plan"
)

// preview asks the fleet what a job means that has just been submitted.
func (s *scaling) preview(j *job) {
	if s.fleet == nil {
		return
	}
	state := s.observe()
	i := slices.IndexFunc(state.Jobs, func(x plan.Demand) bool { return x.Key.Batch == j.Name })
	if i < 0 {
		return
	}
	asked := state.Jobs[i]
	state.Jobs = slices.Delete(state.Jobs, i, i+1)
	j.preview = s.fleet.Peek(s.sim.now, state, []plan.Demand{asked}).Jobs[0]
}

// forecastOf returns a preview in seconds of the run; nil: there was none.
func forecastOf(p autoscale.JobPreview) *JobForecast {
	at := func(t time.Time) float64 {
		if t.IsZero() {
			return 0
		}
		return t.Sub(epoch).Seconds()
	}
	if p.Job == "" || p.Unknown != "" {
		return nil
	}
	return &JobForecast{string(p.Verdict), at(p.Finish), at(p.Earliest), at(p.Latest)}
}
