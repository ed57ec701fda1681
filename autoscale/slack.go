package autoscale

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// slack buys replicas for deadlines: no more than the work needs that the forecast harvest leaves,
// no sooner than waiting would make it more, and never so late that all replicas at once could not
// make up for a forecast that was too good.
type slack struct {
	cfg   Config
	watch *watch
	told  map[string]bool // jobs called infeasible at the last step
}

func newSlack(cfg Config) Controller {
	return &slack{cfg: cfg, watch: newWatch(cfg), told: map[string]bool{}}
}

func (*slack) Name() string { return "slack" }

// Step in phases: see, look ahead, tell what can't be, buy, keep, answer.
func (c *slack) Step(now time.Time, s State) Decision {
	c.watch.observe(now, s)
	o := c.look(now, s)
	o.judge(c.told)
	o.buy()
	o.keep(c.watch)
	dry := len(s.Jobs) == 0
	d := c.watch.answer(now, s, o.want, func(p *Pool) time.Duration {
		if dry && !p.Interactive.Served {
			return c.cfg.Down.Dry
		}
		return c.watch.hold(p)
	})
	o.explain(&d)
	d.Jobs = o.forecasts()
	return d
}

// outlook is one step's view of the future.
type outlook struct {
	cfg      *Config
	now      time.Time
	future   *future
	tasks    []task
	patience float64 // seconds until the next step at the latest
	tail     float64 // seconds that a line takes
	token    float64 // and a token of it
	most     supply  // with all replicas
	soonest  float64 // seconds until a replica asked for now can have been worth it
	// What is due, by guard and by tail.
	expected, doubtful demand

	level   []int  // replicas per pool of the future, for deadlines
	bought  int    // their number, but for those kept
	target  int    // what will do from the next step on
	keeping []bool // by pool: its level is what runs
	reason  Reason
	binding float64 // the deadline that asks for most, less its guard; 0: none asks
	latest  float64 // seconds for which asking can be put off; 0: none is, or no need is in sight
}

func (c *slack) look(now time.Time, s State) *outlook {
	o := &outlook{cfg: &c.cfg, now: now, tasks: tasks(now, s.Jobs),
		patience: 2 * c.cfg.Step.Seconds()}
	horizon := time.Hour.Seconds()
	if n := len(o.tasks); n > 0 {
		horizon = min(max(horizon, o.tasks[n-1].at), c.cfg.Deadline.Horizon.Seconds())
	}
	pools := make([]prospect, len(s.Pools))
	var bounds []float64
	for i := range s.Pools {
		p, x := &s.Pools[i], c.watch.pools[s.Pools[i].ID]
		pools[i] = prospect{index: i, pool: p, replica: x.replica, share: x.harvest.share,
			lasting: 1 - p.Reclaim, lead: x.lead.Seconds()}
		bounds = append(bounds, pools[i].lead, pools[i].lead+o.patience)
		for _, r := range p.Replicas {
			if r.Phase == Starting {
				bounds = append(bounds, comes(now, r, x.lead))
			}
		}
		line := x.replica.line().Seconds()
		o.tail = max(o.tail, line)
		if mean := p.Lines.Mix.Output; mean > 0 {
			o.token = max(o.token, line/mean)
		}
	}
	slices.SortStableFunc(pools, func(a, b prospect) int {
		return cmp.Compare(a.costs(), b.costs())
	})
	cells := grid(now, horizon, bounds...)
	for i := range pools {
		pools[i].expect(now, cells, c.watch.pools[pools[i].pool.ID])
	}
	o.future = newFuture(cells, pools)
	o.level, o.keeping = make([]int, len(pools)), make([]bool, len(pools))
	return o
}

// costs is the price of a pool's harvest. Where no prices are given, replicas cost the same.
func (p *prospect) costs() float64 {
	price := p.pool.Price
	if price <= 0 {
		price = 1
	}
	return price / max(p.share*p.lasting*p.replica.rate(0), 1e-9)
}

// comes is when a starting replica is likely to be ready, in seconds. One that is late is expected
// in a quarter of a start's time.
func comes(now time.Time, r Replica, lead time.Duration) float64 {
	return max(r.Since.Add(lead).Sub(now), lead/4).Seconds()
}

// expect fills in what a pool will carry, cell by cell.
func (p *prospect) expect(now time.Time, cells []cell, x *watched) {
	p.requests, p.needed, p.committed = make([]float64, len(cells)), make([]int, len(cells)),
		make([]int, len(cells))
	if p.pool.Interactive.Served {
		band := 1 + x.forecast.band()
		for c, cell := range cells {
			middle := now.Add(seconds((cell.from + cell.to) / 2))
			p.requests[c] = x.forecast.at(middle)
			// Replicas come before they are needed and stay a while.
			top := max(p.requests[c], x.forecast.at(middle.Add(-slot)),
				x.forecast.at(middle.Add(slot)))
			p.needed[c] = min(p.replica.serve(top*band), p.pool.Max)
			if x.blind {
				p.needed[c] = min(x.needed, p.pool.Max)
			}
		}
	}
	for _, r := range p.pool.Replicas {
		from := 0.0
		switch {
		case r.Phase == Draining || slices.Contains(x.giveUp, r.ID):
			continue
		case r.Phase == Starting:
			from = comes(now, r, x.lead)
		}
		for c, cell := range cells {
			if cell.from >= from && p.committed[c] < p.pool.Max {
				p.committed[c]++
			}
		}
	}
}

// judge finds the jobs that can't be met.
func (o *outlook) judge(told map[string]bool) {
	f := o.future
	o.most = f.supply(f.total, f.total, 0, true)
	// Told to users at once, but only for what is certain; and once told, not taken back for as
	// little as the doubt. What is told is not given up while it might still come true.
	lose(o.certain(told), o.most, o.tail, 1, func(i int) { o.tasks[i].late = true })
	clear(told)
	for _, t := range o.tasks {
		if t.late {
			told[t.job.ID] = true
		}
	}
	lose(o.tasks, o.most, o.tail, 1+o.cfg.Deadline.Doubt, func(i int) { o.tasks[i].lost = true })
	lead := math.Inf(1)
	for _, p := range f.pools {
		lead = min(lead, p.lead)
	}
	o.soonest = lead * (1 + o.cfg.Deadline.LeastUse)
	o.expected, o.doubtful = demandOf(o.tasks, o.guard, 1, o.soonest),
		demandOf(o.tasks, o.last, 1+o.cfg.Deadline.Doubt, lead)
	tight := 0.0
	for _, p := range f.pools {
		tight = max(tight, o.cfg.Deadline.SpotSlack*p.lead)
	}
	if slices.ContainsFunc(f.pools, func(p prospect) bool { return p.lasting < 1 }) {
		o.expected.tighten(o.most, tight)
		o.doubtful.tighten(o.most, tight)
	}
}

// certain is the tasks with the work that they take at the least; of those told to be infeasible,
// as much more as is in doubt.
func (o *outlook) certain(told map[string]bool) []task {
	list := slices.Clone(o.tasks)
	for i := range list {
		j := *list[i].job
		j.Work = j.Least
		if told[j.ID] {
			j.Work *= 1 + o.cfg.Deadline.Doubt
		}
		list[i].job = &j
	}
	return list
}

// guard is how many seconds before its deadline a job's work should be done, and last before which
// its last lines must be under way.
func (o *outlook) guard(t task) float64 {
	cfg := &o.cfg.Deadline
	return cfg.Guard.Seconds() + max(cfg.Lines*o.tail, float64(t.job.Longest)*o.token)
}

func (o *outlook) last(task) float64 { return o.tail }

// buy finds how many replicas deadlines need now.
func (o *outlook) buy() {
	f := o.future
	if d := o.expected; len(d) > 0 && !d.met(f, 0, 0, 0) {
		_, o.binding = d.worst(f.supply(0, 0, 0, true), false)
		o.reason = ReasonDeadline
		// The need is hardly ever a whole number of replicas. The whole part is bought now; the
		// rest is put off until it has grown to a whole replica, which is then used to the end. One
		// step before that, not one after.
		o.target = 1 + sort.Search(f.total, func(n int) bool {
			return d.met(f, n, n+1, o.patience)
		})
		o.bought = o.target - 1
		if o.bought == 0 {
			o.latest = o.put()
		}
	}
	surge := o.surge()
	if d := o.doubtful; len(d) > 0 && !d.met(f, o.bought, max(o.bought, surge), o.patience) {
		from := o.bought
		o.bought = sort.Search(f.total, func(n int) bool {
			return n >= from && d.met(f, n, max(n, surge), o.patience)
		})
		o.reason = ReasonAtRisk
	}
	f.fill(o.bought, o.level)
	o.first()
}

// surge is the replicas that can be had at once if need be.
func (o *outlook) surge() int { return int(float64(o.future.total) * (1 - o.cfg.Deadline.Reserve)) }

// put is for how many seconds asking for replicas can be put off.
func (o *outlook) put() float64 {
	low, high := 0.0, o.binding
	for range 8 {
		if middle := (low + high) / 2; o.expected.met(o.future, 0, o.target, middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// first sees to one replica where there would be none: for jobs whose beginning was promised, and
// to find out how long the lines of a new job take.
func (o *outlook) first() {
	f := o.future
	first := -1
	for i, p := range f.pools {
		if o.level[i] > 0 || p.needed[0] > 0 || p.pool.Min > 0 {
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
	case o.promised(o.now.Add(seconds(lead + o.patience + o.cfg.Deadline.Guard.Seconds()))):
		o.level[first], o.reason = 1, ReasonStartBy
	case o.guessed(lead):
		o.level[first], o.reason = 1, ReasonLearning
	}
}

// promised says whether a job was promised to begin by a time.
func (o *outlook) promised(by time.Time) bool {
	return slices.ContainsFunc(o.tasks, func(t task) bool {
		return !t.job.StartBy.IsZero() && !t.job.StartBy.After(by)
	})
}

// guessed says whether deadlines rest on a guess, and would be missed if the guess was bad and that
// was found out any later: after a replica has come up and lines as long as feared were answered. A
// deadline that is beyond hope by a guess is no different.
func (o *outlook) guessed(lead float64) bool {
	cfg := &o.cfg.Deadline
	feared, any := o.fear()
	for i := range feared {
		feared[i].lost = feared[i].lost && !o.unsure(feared[i])
	}
	found := o.patience + lead + portable.Rounded(cfg.Surprise*o.tail)
	return any && !demandOf(feared, o.last, 1+cfg.Doubt, lead).met(o.future, 0, o.surge(), found)
}

// fear is the tasks with the work of those that nobody is sure of as surprising as it may be; any:
// there are such.
func (o *outlook) fear() (list []task, any bool) {
	list = slices.Clone(o.tasks)
	for i, t := range list {
		if o.unsure(t) {
			j := *t.job
			j.Work *= o.cfg.Deadline.Surprise
			list[i].job, any = &j, true
		}
	}
	return list, any
}

// unsure says that a task's work may well be more than it seems: too few lines were answered to
// tell anything, or fewer than are under way, of which the short ones are answered first.
func (o *outlook) unsure(t task) bool {
	return t.job.Answered < max(o.cfg.Deadline.Sample, t.job.UnderWay)
}

// keep lets replicas that run beyond what traffic needs go on as long as others would have to be
// bought later for the work that is left, even if free harvest turns out to do more of it than
// expected. Letting them go would only mean another start, as long as there is as much work for
// each as a start takes. When a deadline is too close for that, those that carry lines stay until
// they have answered them: there is no time to begin a line anew.
func (o *outlook) keep(watch *watch) {
	f := o.future
	all := demandOf(o.tasks, o.guard, 1-o.cfg.Deadline.Windfall, math.Inf(-1))
	if len(all) == 0 {
		return
	}
	short := all.shortOf(f.free(), false)
	pressing := all[0].at < o.soonest
	for i, p := range f.pools {
		if short <= 0 {
			return
		}
		rate := p.share * p.lasting * p.replica.rate(0)
		needed := max(watch.pools[p.pool.ID].needed, p.pool.Min)
		worth := needed + int(math.Ceil(min(short/max(rate*p.lead, 1e-9), float64(p.pool.Max))))
		if pressing {
			worth = max(worth, carrying(p.pool))
		}
		if there := min(exist(p.pool), worth); there > o.level[i] && there > needed {
			o.level[i], o.keeping[i] = there, true
		}
		short -= portable.Rounded(rate * p.lead * float64(max(0, o.level[i]-needed)))
	}
}

// carrying counts the replicas that have batch lines under way, and those that are coming to.
func carrying(p *Pool) int {
	n := 0
	for _, r := range p.Replicas {
		if r.Phase == Starting || r.Phase == Ready && r.Progress > 0 {
			n++
		}
	}
	return n
}

// want is the number for a pool of the state, before its bounds.
func (o *outlook) want(index int, x *watched) (int, Reason) {
	i := slices.IndexFunc(o.future.pools, func(p prospect) bool { return p.index == index })
	level := o.level[i]
	switch {
	case x.needed >= level && x.needed > 0:
		return x.needed, ReasonInteractive
	case level == 0:
		return 0, ReasonNone
	case o.keeping[i]:
		return level, ReasonPaid
	}
	return level, o.reason
}

// explain adds the deadlines' part to the terms.
func (o *outlook) explain(d *Decision) {
	for i, p := range o.future.pools {
		t := &d.Pools[p.index].Terms
		t.Deadline = o.level[i]
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
		return !t.late && t.job.UnderWay > 0 && o.unsure(t)
	}) {
		sooner(o.now.Add(showing))
	}
}

// showing is how soon to look again at a job whose first lines are under way: what they show is to
// be told soon.
const showing = 10 * time.Second

// forecasts says what becomes of the jobs: done by deadline, those that can't be met after the
// others.
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
			f.Verdict, finish = Infeasible, max(o.most.when(late)+o.tail, t.at)
		} else {
			inTime += t.job.Work
			if finish = planned.when(inTime) + o.tail; finish > t.at {
				finish = o.most.when(inTime) + o.tail
			}
			if inTime*(1+o.cfg.Deadline.Doubt) > o.most.until(t.at-o.tail) {
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
