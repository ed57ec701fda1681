package autoscale

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// Preview says what hypothetical jobs would mean.
type Preview struct {
	Jobs []JobPreview // as asked for
	// Pools are those that serve the jobs, in the order of the state.
	Pools []PoolPreview
	// Worse lists the other jobs whose verdicts would be worse.
	Worse []Worsened
}

// JobPreview is what would happen to a hypothetical job.
type JobPreview struct {
	// Forecast as Step would make it.
	Forecast
	// Unknown says why there is no forecast. Empty: there is one.
	Unknown string
	// Work is the expected engine time, in milliseconds.
	Work float64
	// OneMore is as Fleet.OneMore returns it.
	OneMore time.Time
	// Feasible is the earliest deadline that can be expected to be met, and Sure the earliest that
	// would be met even under the uncertainty. Both let other jobs meet theirs. Zero: not within
	// Config.Deadline.Horizon.
	Feasible, Sure time.Time
}

// PoolPreview is the number of replicas that deadlines need of a pool, at most at one time.
type PoolPreview struct {
	Pool string
	// Replicas with the hypothetical jobs, Without them.
	Replicas, Without int
	// Hours of replicas, beyond those needed without the jobs.
	Hours float64
}

// Worsened is a job whose verdict would be worse.
type Worsened struct {
	Job           string
	Before, After Verdict
}

// minPreview is the shortest time that a preview looks ahead. Jobs without a deadline, and the
// nearest feasible deadline of others, are found within a day.
const minPreview = 26 * time.Hour

// Peek says what hypothetical jobs would mean if they came now. The state is that of Step, without
// them. It learns nothing and changes no later decision.
func (f *Fleet) Peek(now time.Time, s State, jobs []plan.Demand) Preview {
	p := Preview{Jobs: make([]JobPreview, len(jobs))}
	asked := make([]plan.Demand, len(jobs))
	for i, j := range jobs {
		p.Jobs[i] = JobPreview{Forecast: Forecast{Job: j.Key.String()}, Work: j.Work,
			Unknown: fmt.Sprintf("no pool serves the model %q", j.Key.Model)}
		asked[i] = j
		// Its key may be that of another job.
		asked[i].Key.Batch, asked[i].Paused = hypothetical(i), false
	}
	if f.cfg.Policy != "slack" {
		for i := range p.Jobs {
			p.Jobs[i].Unknown = fmt.Sprintf("the policy %q makes no forecasts", f.cfg.Policy)
		}
		return p
	}
	for _, g := range groupsOf(s) {
		f.peek(now, s, g, asked, &p)
	}
	return p
}

// hypothetical returns an ID that sorts after all others: of equal deadlines, new ones come last.
func hypothetical(i int) string { return fmt.Sprintf("\xff%d", i) }

// peek adds what the jobs mean for a group.
func (f *Fleet) peek(now time.Time, s State, without group, asked []plan.Demand, p *Preview) {
	with := group{state: State{Pools: slices.Clone(without.state.Pools)}}
	var own []int
	jobs := slices.Clone(s.Jobs)
	for i := range asked {
		if p.Jobs[i].Unknown != "" && without.serves(&asked[i]) {
			p.Jobs[i].Unknown = ""
			own = append(own, i)
			jobs = append(jobs, asked[i])
		}
	}
	if len(own) == 0 {
		return
	}
	with.addJobs(jobs)
	before, _ := f.plan(now, without.state)
	after, c := f.plan(now, with.state)
	oneMore := map[string]time.Time{}
	c.oneMore(now, with.state, after, oneMore)
	// A job that the asked ones would make late is not late anyway.
	anyway := map[string]bool{}
	for _, t := range before.tasks {
		anyway[t.job.Key.String()] = t.late
	}
	for _, t := range after.tasks {
		if _, other := anyway[t.job.Key.String()]; !other {
			anyway[t.job.Key.String()] = t.late
		}
	}
	verdicts := map[string]Verdict{}
	for _, x := range before.forecasts() {
		verdicts[x.Job] = x.Verdict
	}
	found := map[string]Forecast{}
	for _, x := range after.forecasts() {
		found[x.Job] = x
		if was, other := verdicts[x.Job]; other && was.better(x.Verdict) {
			p.Worse = append(p.Worse, Worsened{x.Job, was, x.Verdict})
		}
	}
	for _, i := range own {
		j := &p.Jobs[i]
		id := j.Job
		if x, ok := found[asked[i].Key.String()]; ok {
			j.Forecast = x
		} else {
			j.Forecast = after.forecast(&asked[i], "", after.ends().undated(&asked[i]))
		}
		j.Job, j.OneMore = id, oneMore[asked[i].Key.String()]
		j.Feasible, j.Sure = after.nearest(&asked[i], anyway)
	}
	hours, had := after.hours(), before.hours()
	for k := range without.state.Pools {
		p.Pools = append(p.Pools, PoolPreview{without.state.Pools[k].Name, after.peak(k),
			before.peak(k), max(0, hours[k]-had[k])})
	}
}

// plan is that of a step for the jobs of a group, without learning from it.
func (f *Fleet) plan(now time.Time, s State) (*outlook, *slack) {
	c := &slack{cfg: f.cfg, tracker: f.tracker.clone()}
	return c.plan(now, s, minPreview), c
}

func (g *group) serves(j *plan.Demand) bool {
	return slices.ContainsFunc(g.state.Pools, func(p PoolState) bool {
		return p.Serves(j)
	})
}

// better reports whether a verdict is better than another one.
func (v Verdict) better(than Verdict) bool {
	order := []Verdict{OK, AtRisk, Infeasible}
	return slices.Index(order, v) < slices.Index(order, than)
}

// nearest returns the earliest deadlines with which a job, whatever its own, would be met as
// expected, and under the uncertainty. late holds the IDs of the jobs that need not meet theirs.
func (o *outlook) nearest(j *plan.Demand, late map[string]bool) (feasible, sure time.Time) {
	at := func(s float64) time.Time {
		if !(s <= o.cfg.Deadline.Horizon.Seconds()) {
			return time.Time{}
		}
		return o.now.Add(seconds(s))
	}
	expected := o.earliestDeadline(j, j.Work, 1, o.hopeful(), late)
	cautious := o.earliestDeadline(j, o.maxWork(j), o.cautious(expected), 1, late)
	// Jobs that are at risk anyway do not count for cautious.
	return at(expected), at(max(expected, cautious))
}

// earliestDeadline returns the earliest deadline, in seconds from now, that all replicas meet if a
// job has an amount of work and everything takes a factor more. The jobs due after it must meet
// theirs, too, unless they are in late or can't. Those that can only if hope times as much work is
// done must still be able to.
func (o *outlook) earliestDeadline(
	j *plan.Demand, work, factor, hope float64, late map[string]bool,
) float64 {
	var others demand
	sum := 0.0
	for _, t := range o.tasks {
		if t.job.Key.String() != j.Key.String() && !late[t.job.Key.String()] {
			sum += t.job.Work
			others = append(others, due{at: t.deadline, work: sum})
		}
	}
	// From the last deadline on: as long as the work fits in before it, an earlier one will do.
	at := len(others)
	for at > 0 {
		d := others[at-1]
		can := o.most.until(d.at - o.lineTime)
		if can < factor*d.work {
			can *= hope
		}
		if can < factor*d.work { // missed in any case
			at--
			continue
		}
		if can < factor*(d.work+work) {
			break
		}
		at--
	}
	before, after := 0.0, 0.0
	if at > 0 {
		before, after = others[at-1].work, others[at-1].at
	}
	return max(after, o.most.when(factor*(before+work))+o.lineTime)
}

// peak returns the number of replicas that deadlines need of a pool of the state.
func (o *outlook) peak(index int) int {
	number := make([]int, len(o.future.pools))
	o.future.distribute(max(o.bought, o.target), number)
	for i, p := range o.future.pools {
		if p.index == index {
			return max(number[i], o.replicas[i])
		}
	}
	return 0
}

// hours returns, by pool of the state, the hours of replicas that deadlines need beyond those that
// exist in any case: for the work that these can't do, and to start.
func (o *outlook) hours() []float64 {
	f := o.future
	hours := make([]float64, len(f.pools))
	short := o.expected.shortOf(f.supply(0, 0, 0, true), false)
	if len(o.expected) == 0 || short <= 0 {
		return hours
	}
	number := make([]int, len(f.pools))
	f.distribute(max(o.bought, o.target), number)
	for i, p := range f.pools {
		there := max(p.needed[0], p.pool.Min)
		more := number[i] - there
		if more <= 0 || short <= 0 {
			continue
		}
		rate := (f.rate(i, 0, number[i]) - f.rate(i, 0, there)) / float64(more) *
			time.Hour.Seconds()
		// All of them could be busy until the last deadline.
		did := min(short, rate*float64(more)*o.expected[len(o.expected)-1].at/
			time.Hour.Seconds())
		short -= did
		hours[p.index] = did/max(rate, 1e-9) + float64(max(0, number[i]-active(p.pool)))*p.lead/
			time.Hour.Seconds()
	}
	return hours
}
