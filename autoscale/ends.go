package autoscale

import (
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/portable"
)

// ends predicts when jobs end. Jobs share the pools until one is urgent, which goes first: see
// package scheduler. So a job ends when all have got as much as it needs, or by its deadline.
type ends struct {
	o       *outlook
	planned supply
	// The work of the jobs that are not paused: as expected, as nine of ten have more, and as nine
	// of ten have less.
	expected, small, large sharing
}

// end is when a job ends, in seconds from now: nine of ten end after the earliest, and nine of ten
// before the latest. +Inf: never.
type end struct{ earliest, expected, latest float64 }

// The bounds were calibrated on simulated days; see docs/designs/scaling.md.
const (
	// earlyShare is the share of the expected time that a job takes if its lines are shorter, and
	// the harvest greater, than expected.
	earlyShare = 0.65
	// earlyStart is the time that a job takes, as a multiple of that with all replicas. It applies
	// if others come that need replicas before it does.
	earlyStart = 2
	// lateShare is the time that a job takes, as a multiple of what is expected. It applies if jobs
	// come later that share the pools, or the harvest is less.
	lateShare = 1.35
	// earlyWork is the share of the way from the expected work of a job to the least, on a
	// logarithmic scale. lateWork is that to the most.
	earlyWork, lateWork = 0.6, 0.8
	// lateTime is added for the start of the first lines and the tail of the last.
	lateTime = 5 * time.Minute
)

func (o *outlook) ends() *ends {
	e := &ends{o: o, planned: o.planned()}
	for i := range o.jobs {
		if j := &o.jobs[i]; !j.Paused && j.Work > 0 {
			e.expected.works = append(e.expected.works, j.Work)
			e.small.works = append(e.small.works, o.smallWork(j))
			e.large.works = append(e.large.works, o.largeWork(j))
		}
	}
	e.expected.prepare()
	e.small.prepare()
	e.large.prepare()
	return e
}

// sharing holds the work of jobs that get the same share of the pools.
type sharing struct {
	works []float64 // in increasing order
	sums  []float64 // of works, from the first to each
}

func (s *sharing) prepare() {
	slices.Sort(s.works)
	s.sums = make([]float64, len(s.works))
	sum := 0.0
	for i, w := range s.works {
		sum += w
		s.sums[i] = sum
	}
}

// until returns the work that is done until the job of a size ends.
func (s *sharing) until(work float64) float64 {
	i, _ := slices.BinarySearch(s.works, work)
	sum := 0.0
	if i > 0 {
		sum = s.sums[i-1]
	}
	return sum + float64(len(s.works)-i)*work
}

// all returns the work of all jobs.
func (s *sharing) all() float64 {
	if len(s.sums) == 0 {
		return 0
	}
	return s.sums[len(s.sums)-1]
}

// planned returns the work that can be done with the replicas that will be bought.
func (o *outlook) planned() supply {
	after := o.patience
	if o.bought < o.target {
		after = max(after, o.postponable(o.bought))
	}
	return o.future.supply(o.bought, max(o.bought, o.target), after, true)
}

// maxWork returns the most work that a job may have, as far as is known.
func (o *outlook) maxWork(j *plan.Demand) float64 {
	if !o.uncertain(task{job: j}) {
		return j.Work
	}
	if j.Most <= 0 {
		return j.Work * o.cfg.Deadline.UnknownFactor
	}
	return max(j.Work, o.slower(j)*j.Most)
}

// minWork returns how little work a job may have, as far as is known.
func (o *outlook) minWork(j *plan.Demand) float64 {
	if !o.uncertain(task{job: j}) {
		return j.Work
	}
	return min(j.Work, max(j.Least, j.Work/o.cfg.Deadline.UnknownFactor))
}

// smallWork and largeWork return the work that one, and nine, of ten jobs like this do not exceed.
func (o *outlook) smallWork(j *plan.Demand) float64 {
	return towards(j.Work, o.minWork(j), earlyWork)
}

func (o *outlook) largeWork(j *plan.Demand) float64 {
	return towards(j.Work, o.maxWork(j), lateWork)
}

// towards returns a number between two, of which it is nearer to the second, the larger the share.
func towards(from, to, share float64) float64 {
	if from <= 0 || to <= 0 || from == to {
		return from
	}
	return from * portable.Exp(share*portable.Log(to/from))
}

// inTime predicts the end of a job that can be met by its deadline; +Inf: it has none. due is the
// work of all jobs due until then.
func (e *ends) inTime(j *plan.Demand, deadline, due float64) end {
	o := e.o
	urgent := e.planned.when(due) + o.lineTime // if it goes first
	if urgent > deadline {
		urgent = o.most.when(due) + o.lineTime
	}
	tail := max(o.cfg.Deadline.Lines*o.lineTime, float64(j.Longest)*o.tokenTime)
	work := e.expected.until(j.Work)
	expected := e.planned.when(work) + tail
	x := end{
		earliest: e.early(e.planned.when(min(e.small.until(o.smallWork(j)), due))),
		expected: min(expected, max(urgent, deadline-tail)),
		latest: min(e.late(e.planned.when(e.large.until(o.largeWork(j))))+tail,
			max(urgent, deadline)),
	}
	if o.latest > 0 { // jobs may come that bring replicas before they are bought for this one
		x.earliest = earlyStart * o.most.when(work)
	}
	return x.ordered()
}

// early and late return the times that one of ten jobs, and nine of ten, take where one is
// expected.
func (e *ends) early(expected float64) float64 {
	if long, _, measured := e.o.missed(expected); measured {
		return expected / long
	}
	return earlyShare * expected
}

func (e *ends) late(expected float64) float64 {
	if _, short, measured := e.o.missed(expected); measured {
		return expected * short
	}
	return lateShare*expected + lateTime.Seconds()
}

// missed returns by what factors a time may be too long and too short, as past predictions were.
// Not measured: all pools have cost models. Of several pools the one counts of which less is known.
func (o *outlook) missed(expected float64) (long, short float64, measured bool) {
	for i := range o.future.pools {
		p := &o.future.pools[i]
		if p.pool.Engine.CostModel.Known() {
			continue
		}
		l, s := p.harvest.misses.spread(expected, ownMiss)
		long, short, measured = max(long, l), max(short, s), true
	}
	return long, short, measured
}

// overdue predicts the end of a job that misses its deadline. behind is the work of all that go
// before it, and its own.
func (e *ends) overdue(j *plan.Demand, deadline, behind float64) end {
	o := e.o
	x := end{
		earliest: max(deadline, e.early(o.most.when(behind))),
		expected: max(deadline, o.most.when(behind)+o.lineTime),
		latest:   e.late(o.most.when(behind - j.Work + o.largeWork(j))),
	}
	return x.ordered()
}

func (x end) ordered() end {
	return end{min(x.earliest, x.expected), x.expected, max(x.latest, x.expected)}
}

// forecast returns the forecast of a job with an end.
func (o *outlook) forecast(j *plan.Demand, v Verdict, x end) Forecast {
	at := func(s float64) time.Time {
		if !(s <= o.cfg.Deadline.Horizon.Seconds()) {
			return time.Time{}
		}
		return o.now.Add(seconds(s))
	}
	return Forecast{Job: j.Key.String(), Verdict: v, Finish: at(x.expected),
		Earliest: at(x.earliest), Latest: at(x.latest)}
}

// forecasts returns the expected end of each job, those with a deadline first, in the order of
// deadlines. Those that are late go after the others.
func (o *outlook) forecasts() []Forecast {
	e := o.ends()
	list := make([]Forecast, 0, len(o.tasks))
	due, behind := 0.0, 0.0
	for _, t := range o.tasks {
		if !t.late {
			behind += t.job.Work
		}
	}
	for _, t := range o.tasks {
		if t.late {
			behind += t.job.Work
			list = append(list, o.forecast(t.job, Infeasible, e.overdue(t.job, t.deadline, behind)))
			continue
		}
		due += t.job.Work
		verdict := OK
		if o.cautious(t.deadline)*due > o.most.until(t.deadline-o.lineTime) {
			verdict = AtRisk
		}
		list = append(list, o.forecast(t.job, verdict, e.inTime(t.job, t.deadline, due)))
	}
	for i := range o.jobs {
		if j := &o.jobs[i]; j.Deadline.IsZero() && !j.Paused && j.Work > 0 {
			list = append(list, o.forecast(j, "", e.undated(j)))
		}
	}
	return list
}

// cautious returns the factor by which work that is done within a time may take longer.
func (o *outlook) cautious(within float64) float64 {
	if _, short, measured := o.missed(within); measured {
		return short
	}
	return 1 + o.cfg.Deadline.Uncertainty
}

// hopeful returns the factor by which more work may be done than is expected. With a cost model
// what is expected is the most.
func (o *outlook) hopeful() float64 {
	if n := len(o.tasks); n > 0 {
		last, factor := o.tasks[n-1].deadline, 1.0
		for i := range o.future.pools {
			if p := &o.future.pools[i]; !p.pool.Engine.CostModel.Known() {
				factor = max(factor, p.harvest.hopeful(last))
			}
		}
		return factor
	}
	return 1
}

// undated predicts the end of a job without a deadline, which uses what others leave.
func (e *ends) undated(j *plan.Demand) end {
	return e.inTime(j, math.Inf(1), e.expected.all())
}
