package autoscale

import (
	"slices"
	"time"
)

// OneMore returns when jobs would be done with one replica more than is allowed, of the pool that
// does the most work for its price, if it were started now. It is for the state of the last step.
// A job that it does not help is done as forecast. Empty: the policy makes no forecasts.
func (f *Fleet) OneMore(now time.Time, s State) map[string]time.Time {
	finish := map[string]time.Time{}
	for _, g := range groupsOf(s) {
		if c, ok := f.groups[g.key()].(*slack); ok {
			c.oneMore(now, g.state, c.forecast(now, g.state, minPreview), finish)
		}
	}
	return finish
}

// oneMore adds when the jobs of a state would be done with one more replica. o is the outlook
// without it.
func (c *slack) oneMore(now time.Time, s State, o *outlook, finish map[string]time.Time) {
	if len(o.future.pools) == 0 || len(o.jobs) == 0 {
		return
	}
	s.Pools = slices.Clone(s.Pools)
	p := &s.Pools[o.future.pools[0].index]
	if p.Min == p.Max { // somebody has to start it
		p.Min++
		p.Replicas = append(slices.Clone(p.Replicas),
			Replica{ID: "\xff", Phase: Starting, Since: now})
	}
	p.Max++
	with := c.forecast(now, s, minPreview)
	for _, f := range o.forecasts() {
		finish[f.Job] = f.Finish
	}
	for _, f := range with.forecasts() {
		before := finish[f.Job]
		if !f.Finish.IsZero() && (before.IsZero() || f.Finish.Before(before)) {
			finish[f.Job] = f.Finish
		}
	}
}
