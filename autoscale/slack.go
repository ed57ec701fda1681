package autoscale

import (
	"slices"
	"time"
)

// slack buys replicas for deadlines: no more than the work needs beyond the free harvest, and as
// late as possible, but early enough that all replicas together could still make up for a forecast
// that was too good.
type slack struct {
	cfg        Config
	tracker    *tracker
	infeasible map[string]bool // jobs reported as infeasible at the last step
}

func newSlack(cfg Config) Controller {
	return &slack{cfg: cfg, tracker: newTracker(cfg), infeasible: map[string]bool{}}
}

func (*slack) Name() string { return "slack" }

// Step observes the state, predicts, finds the jobs that are late, buys replicas for the others,
// retains running ones, and builds the decision.
func (c *slack) Step(now time.Time, s State) Decision {
	c.tracker.observe(now, s)
	o := c.predict(now, s)
	o.findLate(c.infeasible)
	o.buy()
	o.retain(c.tracker)
	dry := len(s.Jobs) == 0
	d := c.tracker.decide(now, s, o.want, func(p *Pool) time.Duration {
		if dry && !p.Interactive.Served {
			return c.cfg.Down.Dry
		}
		return c.tracker.hold(p)
	})
	o.explain(&d)
	d.Jobs = o.forecasts()
	return d
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

// forecasts returns the expected end of each job: in the order of deadlines, and those that are
// late after the others.
func (o *outlook) forecasts() []Forecast {
	planned := o.future.supply(o.bought, max(o.bought, o.target), o.patience, true)
	list := make([]Forecast, 0, len(o.tasks))
	inTime, late := 0.0, 0.0
	for _, t := range o.tasks {
		if !t.late {
			late += t.job.Work
		}
	}
	for _, t := range o.tasks {
		f := Forecast{Job: t.job.ID, Verdict: OK}
		var finish float64
		if t.late {
			late += t.job.Work
			f.Verdict, finish = Infeasible, max(o.most.when(late)+o.lineTime, t.deadline)
		} else {
			inTime += t.job.Work
			if finish = planned.when(inTime) + o.lineTime; finish > t.deadline {
				finish = o.most.when(inTime) + o.lineTime
			}
			if inTime*(1+o.cfg.Deadline.Uncertainty) > o.most.until(t.deadline-o.lineTime) {
				f.Verdict = AtRisk
			}
		}
		if finish <= o.cfg.Deadline.Horizon.Seconds() {
			f.Finish = o.now.Add(seconds(finish))
		}
		list = append(list, f)
	}
	return list
}
