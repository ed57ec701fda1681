package autoscale

import (
	"slices"
	"time"
)

// slack buys replicas for deadlines: no more than the work needs beyond the free harvest, and as
// late as possible, but early enough that all replicas together could still make up for a forecast
// that was too good.
type slack struct {
	cfg     Config
	tracker *tracker
}

func newSlack(cfg Config, t *tracker) Controller { return &slack{cfg: cfg, tracker: t} }

func (*slack) Name() string { return "slack" }

// Step observes the state, predicts, finds the jobs that are late, buys replicas for the others,
// retains running ones, and builds the decision.
func (c *slack) Step(now time.Time, s State) Decision {
	o := c.plan(now, s, 0)
	c.tracker.setInfeasible(s, o.late())
	o.retain(c.tracker)
	dry := len(s.Jobs) == 0
	d := c.tracker.decide(now, s, o.want, func(p *PoolState) removal {
		if dry && !p.Interactive.Served {
			return removal{hold: c.cfg.Down.Dry, share: 1} // none of them does anything
		}
		return c.tracker.removal(p)
	})
	o.explain(&d)
	d.Jobs = o.forecasts()
	return d
}

// plan observes a state, predicts at least until a horizon, finds the jobs that are late, and buys
// replicas for the others.
func (c *slack) plan(now time.Time, s State, horizon time.Duration) *outlook {
	c.tracker.observe(now, s)
	return c.forecast(now, s, horizon)
}

// forecast is plan for a state that was observed.
func (c *slack) forecast(now time.Time, s State, horizon time.Duration) *outlook {
	o := c.predict(now, s, horizon)
	o.findLate(c.tracker.infeasible(s))
	o.buy()
	return o
}

// want returns the number of replicas for a pool of the state, before its bounds.
func (o *outlook) want(index int, x *trackedPool) (int, Reason) {
	i := slices.IndexFunc(o.future.pools, func(p poolFuture) bool { return p.index == index })
	n := o.replicas[i]
	switch {
	case x.needed >= n && x.needed > 0:
		return x.needed, ReasonInteractive
	case n == 0:
		return 0, ReasonNone
	case o.retained[i]:
		return n, ReasonPaid
	}
	return n, o.reason
}

// explain adds the terms of deadlines to a decision. It brings the next step forward if a replica
// may have to be requested, or the first answers of a job may be known, before.
func (o *outlook) explain(d *Decision) {
	for i, p := range o.future.pools {
		t := &d.Pools[p.index].Terms
		t.Deadline = o.replicas[i]
		if o.binding > 0 {
			t.Binding = o.now.Add(seconds(o.binding))
		}
		if o.latest > 0 {
			t.LatestStart = o.now.Add(seconds(o.latest))
		}
	}
	sooner := func(at time.Time) {
		if at.Before(d.Wake) {
			d.Wake = at
		}
	}
	if o.latest > 0 {
		sooner(o.now.Add(seconds(o.latest)))
	}
	if slices.ContainsFunc(o.tasks, func(t task) bool {
		return !t.late && t.job.InFlight > 0 && o.uncertain(t)
	}) {
		sooner(o.now.Add(firstAnswers))
	}
}

// firstAnswers is the interval of steps while the first lines of a job are in flight, so that what
// they show is used soon.
const firstAnswers = 10 * time.Second
