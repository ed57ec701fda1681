package autoscale

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// outlook is the planning of one step of the policy slack. Times are seconds from now.
type outlook struct {
	cfg       *Config
	now       time.Time
	future    *future
	jobs      []plan.Demand
	tasks     []task
	patience  float64 // until the next step at the latest
	lineTime  float64 // of a line
	tokenTime float64 // of an output token
	most      supply  // with all replicas
	earliest  float64 // until a replica requested now can have been worth its start

	// expected is the demand by the estimates, due before the guard. uncertainDemand is that under
	// the uncertainty, due one line's time before the deadlines.
	expected, uncertainDemand demand

	replicas []int   // by pool of future, for deadlines
	bought   int     // their number, without the retained ones
	target   int     // the number that will suffice from the next step on
	retained []bool  // by pool: its number is that of running replicas
	reason   Reason  // of the bought ones
	binding  float64 // the instant that needs the most replicas; 0: none needs any
	latest   float64 // until a replica must be requested; 0: now, or not within the horizon
}

func (c *slack) predict(now time.Time, s State, least time.Duration) *outlook {
	o := &outlook{cfg: &c.cfg, now: now, jobs: s.Jobs, tasks: tasks(now, s.Jobs),
		patience: 2 * c.cfg.Step.Seconds()}
	horizon := max(time.Hour, least).Seconds()
	if n := len(o.tasks); n > 0 {
		horizon = min(max(horizon, o.tasks[n-1].deadline), c.cfg.Deadline.Horizon.Seconds())
	}
	pools := make([]poolFuture, len(s.Pools))
	var bounds []float64
	for i := range s.Pools {
		p, x := &s.Pools[i], c.tracker.pools[s.Pools[i].Name]
		pools[i] = poolFuture{index: i, pool: p, replica: x.replica, share: x.harvest.share,
			harvest: &x.harvest, lasting: 1 - p.Reclaim, lead: x.lead.Seconds()}
		bounds = append(bounds, pools[i].lead, pools[i].lead+o.patience)
		for _, r := range p.Replicas {
			if r.Phase == Starting {
				bounds = append(bounds, readyIn(now, r, x.lead))
			}
		}
		line := x.replica.lineTime().Seconds()
		o.lineTime = max(o.lineTime, line)
		if mean := p.Lines.Mix.Output; mean > 0 {
			o.tokenTime = max(o.tokenTime, line/mean)
		}
	}
	slices.SortStableFunc(pools, func(a, b poolFuture) int {
		return cmp.Compare(a.unitCost(), b.unitCost())
	})
	cells := grid(now, horizon, bounds...)
	for i := range pools {
		pools[i].predict(now, cells, c.tracker.pools[pools[i].pool.Name])
	}
	o.future = newFuture(cells, pools)
	o.replicas, o.retained = make([]int, len(pools)), make([]bool, len(pools))
	return o
}

// findLate marks the tasks that miss their deadlines, and builds the demand of the others.
// infeasible holds the jobs that were reported as infeasible at the last step.
func (o *outlook) findLate(infeasible map[string]bool) {
	f := o.future
	o.most = f.supply(f.total, f.total, 0, true)
	// An infeasible job is reported at once, but only by its least work, which is certain. Within
	// the uncertainty the report is not withdrawn. Until a job is lost under the uncertainty too,
	// it is not given up.
	hopeful := o.hopeful()
	findLate(o.certain(infeasible), o.most, o.lineTime, hopeful,
		func(i int) { o.tasks[i].late = true })
	findLate(o.tasks, o.most, o.lineTime, max(hopeful, 1+o.cfg.Deadline.Uncertainty),
		func(i int) { o.tasks[i].lost = true })
	lead := math.Inf(1)
	for _, p := range f.pools {
		lead = min(lead, p.lead)
	}
	o.earliest = lead * (1 + o.cfg.Deadline.MinUse)
	o.expected = newDemand(o.tasks, o.guard, 1, o.earliest)
	o.uncertainDemand = newDemand(o.tasks, o.lastLine, 1+o.cfg.Deadline.Uncertainty, lead)
	tight := 0.0
	for _, p := range f.pools {
		tight = max(tight, o.cfg.Deadline.SpotSlack*p.lead)
	}
	if slices.ContainsFunc(f.pools, func(p poolFuture) bool { return p.lasting < 1 }) {
		o.expected.markTight(o.most, tight)
		o.uncertainDemand.markTight(o.most, tight)
	}
}

// late returns the jobs that miss their deadlines.
func (o *outlook) late() []string {
	var ids []string
	for _, t := range o.tasks {
		if t.late {
			ids = append(ids, t.job.Key.String())
		}
	}
	return ids
}

// certain returns the tasks with their least work. That of jobs reported as infeasible is increased
// by the uncertainty.
func (o *outlook) certain(infeasible map[string]bool) []task {
	list := slices.Clone(o.tasks)
	for i := range list {
		j := *list[i].job
		j.Work = j.Least
		if infeasible[j.Key.String()] {
			j.Work *= 1 + o.cfg.Deadline.Uncertainty
		}
		list[i].job = &j
	}
	return list
}

// guard returns the time before its deadline at which the work of a task should be done, in
// seconds.
func (o *outlook) guard(t task) float64 {
	cfg := &o.cfg.Deadline
	return cfg.Guard.Seconds() + max(cfg.Lines*o.lineTime, float64(t.job.Longest)*o.tokenTime)
}

// lastLine returns the time before its deadline at which the last lines of a task must start, in
// seconds.
func (o *outlook) lastLine(task) float64 { return o.lineTime }

// buy finds the number of replicas that deadlines need now.
func (o *outlook) buy() {
	f := o.future
	if d := o.expected; len(d) > 0 && !d.metBy(f, 0, 0, 0) {
		_, o.binding = d.worst(f.supply(0, 0, 0, true), false)
		o.reason = ReasonDeadline
		// The need is rarely a whole number of replicas. Its integer part is bought now. The
		// fraction is postponed until it has grown to a replica that is used to the end. The number
		// is that of one step before this moment, not after.
		o.target = 1 + sort.Search(f.total, func(n int) bool {
			return d.metBy(f, n, n+1, o.patience)
		})
		o.bought = o.target - 1
		if o.bought == 0 {
			o.latest = o.postponable(0)
		}
	}
	surge := o.surge()
	if d := o.uncertainDemand; len(d) > 0 && !d.metBy(f, o.bought, max(o.bought, surge),
		o.patience) {
		from := o.bought
		o.bought = sort.Search(f.total, func(n int) bool {
			return n >= from && d.metBy(f, n, max(n, surge), o.patience)
		})
		o.reason = ReasonAtRisk
	}
	f.distribute(o.bought, o.replicas)
	o.startOne()
}

// surge returns the number of replicas that can be requested at once if necessary.
func (o *outlook) surge() int { return int(float64(o.future.total) * (1 - o.cfg.Deadline.Reserve)) }

// postponable returns the time by which the request of the target can be postponed, in seconds, if
// a number of replicas is requested now.
func (o *outlook) postponable(now int) float64 {
	low, high := 0.0, o.binding
	for range 8 {
		if middle := (low + high) / 2; o.expected.metBy(o.future, now, o.target, middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// startOne requests one replica if there would be none, for a job that must start soon, or to
// measure the lines of a new job.
func (o *outlook) startOne() {
	f := o.future
	first := -1
	for i, p := range f.pools {
		if o.replicas[i] > 0 || p.needed[0] > 0 || p.pool.Min > 0 {
			return
		}
		if first < 0 && p.pool.Max > 0 {
			first = i
		}
	}
	if first < 0 {
		return
	}
	switch lead := f.pools[first].lead; {
	case o.mustStart(o.now.Add(seconds(lead + o.patience + o.cfg.Deadline.Guard.Seconds()))):
		o.replicas[first], o.reason = 1, ReasonStartBy
	case o.mustMeasure(lead):
		o.replicas[first], o.reason = 1, ReasonLearning
	}
}

// mustStart reports whether a job must start by a time.
func (o *outlook) mustStart(by time.Time) bool {
	return slices.ContainsFunc(o.tasks, func(t task) bool {
		return !t.job.StartBy.IsZero() && !t.job.StartBy.After(by)
	})
}

// mustMeasure reports whether a deadline depends on an uncertain estimate, and would be missed if
// the estimate is UnknownFactor too low and that is noticed any later, after a replica has started
// and long lines were answered. This includes jobs that are lost by their estimates.
func (o *outlook) mustMeasure(lead float64) bool {
	cfg := &o.cfg.Deadline
	list, some := o.pessimistic()
	for i := range list {
		list[i].lost = list[i].lost && !o.uncertain(list[i])
	}
	measured := o.patience + lead + o.measureTime()
	return some && !newDemand(list, o.lastLine, 1+cfg.Uncertainty, lead).metBy(
		o.future, 0, o.surge(), measured)
}

// measureTime returns the time to measure the lines of uncertain tasks, in seconds, if they are as
// long as they may be.
func (o *outlook) measureTime() float64 {
	took := o.cfg.Deadline.UnknownFactor * o.lineTime
	for _, t := range o.tasks {
		if o.uncertain(t) {
			took = max(took, t.job.MaxOutput*o.tokenTime)
		}
	}
	return took
}

// pessimistic returns the tasks with the most work that uncertain ones may have, as the pools do it
// at the expected rate. some says that there are uncertain ones.
func (o *outlook) pessimistic() (list []task, some bool) {
	list = slices.Clone(o.tasks)
	for i, t := range list {
		if o.uncertain(t) {
			j := *t.job
			j.Work = max(o.slower(t.job)*j.Most, j.Work*o.cfg.Deadline.UnknownFactor)
			list[i].job, some = &j, true
		}
	}
	return list, some
}

// slower returns the factor by which replicas do a job's work more slowly than expected, if its
// lines are as long as they may be. Fewer long lines fit in the KV cache. At least 1.
func (o *outlook) slower(j *plan.Demand) float64 {
	if j.MaxOutput <= 0 || j.Lines <= 0 {
		return 1
	}
	factor := 1.0
	for _, p := range o.future.pools {
		pool := *p.pool
		pool.Lines.Mix.Output, pool.Lines.Work = j.MaxOutput, j.Most/float64(j.Lines)
		long := newReplica(&pool, &o.cfg.Harvest, o.cfg.Forecast.Burst)
		if rate := long.rate(0); rate > 0 {
			factor = max(factor, p.replica.rate(0)/rate)
		}
	}
	return factor
}

// uncertain reports whether the work of a task may be much more than its estimate: few of its lines
// were answered, or fewer than are in flight, of which the short ones finish first.
func (o *outlook) uncertain(t task) bool {
	return t.job.Answered < max(o.cfg.Deadline.Sample, t.job.InFlight)
}

// retain keeps running replicas beyond those for the traffic, as long as others would have to be
// bought later for the work left, even if the free harvest is more than expected. Removing them
// would only cause another start. Each must have as much work as a start takes. When a deadline is
// too close for that, replicas with lines in flight are kept until these are answered, because
// there is no time to start a line again.
func (o *outlook) retain(tracker *tracker) {
	f := o.future
	all := newDemand(o.tasks, o.guard, 1-o.cfg.Deadline.Surplus, math.Inf(-1))
	if len(all) == 0 {
		return
	}
	short := all.shortOf(f.free(), false)
	pressing := all[0].at < o.earliest
	for i, p := range f.pools {
		if short <= 0 {
			return
		}
		rate := p.share * p.lasting * p.replica.rate(0)
		needed := max(tracker.pools[p.pool.Name].needed, p.pool.Min)
		worth := needed + int(math.Ceil(min(short/max(rate*p.lead, 1e-9), float64(p.pool.Max))))
		if pressing {
			worth = max(worth, busy(p.pool))
		}
		if n := min(active(p.pool), worth); n > o.replicas[i] && n > needed {
			o.replicas[i], o.retained[i] = n, true
		}
		short -= rate * p.lead * float64(max(0, o.replicas[i]-needed))
	}
}

// busy counts the replicas that have batch lines in flight, and those that are starting.
func busy(p *PoolState) int {
	n := 0
	for _, r := range p.Replicas {
		if r.Phase == Starting || r.Phase == Ready && r.Progress > 0 {
			n++
		}
	}
	return n
}
