package scheduler

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Queue orders the jobs of one pool. It is not safe for concurrent use. Every operation costs O(log
// n) in the number of jobs, except Snapshot.
//
// Time is what Next and Wake were last told, and goes only forward: an earlier time counts as the
// latest seen.
type Queue struct {
	cfg      Config
	arbiter  Arbiter
	lanes    []*lane // in listed order
	catchAll *lane
	jobs     map[string]*entry
	alarms   heap // offered jobs that time will move to another class
	now      instant
	offered  int

	// work per weight that the queue last charged had had: where a returning queue joins in
	share      float64
	contenders []Contender
	contending []*lane // beside contenders

	unranked     int
	lastUnranked error
}

// NewQueue returns an empty queue. The error is that of cfg.Validate.
func NewQueue(cfg Config) (*Queue, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("scheduler config: %w", err)
	}
	arbiter, err := NewArbiter(cfg.BetweenQueues, cfg)
	if err != nil {
		return nil, err
	}
	q := &Queue{cfg: cfg, arbiter: arbiter, jobs: map[string]*entry{}, alarms: newAlarms(),
		now: math.Inf(-1)}
	queues := slices.Clone(cfg.Queues)
	if !slices.ContainsFunc(queues, func(qc QueueConfig) bool { return qc.Name == DefaultQueue }) {
		queues = append(queues, QueueConfig{Name: DefaultQueue})
	}
	for _, qc := range queues {
		lane, err := newLane(qc, &q.cfg)
		if err != nil {
			return nil, fmt.Errorf("queue %s: %w", qc.Name, err)
		}
		q.lanes = append(q.lanes, lane)
		if qc.Name == DefaultQueue {
			q.catchAll = lane
		}
	}
	return q, nil
}

// Put adds a job, or ranks it again after a change. A known job stays parked or offered as it was;
// a new one is offered.
func (q *Queue) Put(j Job) {
	lane := q.laneOf(j)
	class, changes := lane.classify(j, q.now)
	e := q.jobs[j.ID]
	switch {
	case e == nil:
		e = &entry{job: j, rank: q.rank(lane, j), line: -1, alarm: -1}
		q.jobs[j.ID] = e
		lane.enlist(e, class, changes)
		q.offer(e)
	case e.lane == lane && e.class == class && e.job.Tenant == j.Tenant:
		e.job, e.rank = j, q.rank(lane, j)
		e.changes = changes
		if !e.parked {
			lane.fix(e)
			q.unsetAlarm(e)
			q.setAlarm(e)
		}
	default:
		if !e.parked {
			q.withdraw(e)
		}
		e.lane.dismiss(e)
		e.job, e.rank = j, q.rank(lane, j)
		lane.enlist(e, class, changes)
		if !e.parked {
			q.offer(e)
		}
	}
}

// Park keeps a job known but offers it no more: it has nothing to start now. An unknown job is
// ignored, here and below.
func (q *Queue) Park(id string) {
	if e := q.jobs[id]; e != nil && !e.parked {
		q.withdraw(e)
		e.parked = true
	}
}

// Unpark offers a parked job again.
func (q *Queue) Unpark(id string) {
	if e := q.jobs[id]; e != nil && e.parked {
		e.parked = false
		q.offer(e) // if its class has ended meanwhile, the next advance moves it
	}
}

// Remove forgets a job.
func (q *Queue) Remove(id string) {
	e := q.jobs[id]
	if e == nil {
		return
	}
	if !e.parked {
		q.withdraw(e)
	}
	e.lane.dismiss(e)
	delete(q.jobs, id)
}

// Next says whose line goes next; ok is false when no job is offered. It changes nothing a caller
// can see: until another method is called or time passes, it answers the same.
func (q *Queue) Next(now time.Time) (id string, ok bool) {
	q.advance(now)
	if q.offered == 0 {
		return "", false
	}
	return q.pick().top().job.ID, true
}

// Charge accounts a started line of that much work: to the job's tenant, which fairness between
// tenants counts, and to its named queue. Work that is not above 0 is ignored.
func (q *Queue) Charge(id string, work float64) {
	e := q.jobs[id]
	if e == nil || !(work > 0) {
		return
	}
	q.share = max(q.share, e.lane.served/e.lane.weight)
	e.lane.charge(e, min(work, mostWork))
}

// Wake is when time alone changes the order next, because a job becomes urgent or late; zero:
// never.
func (q *Queue) Wake(now time.Time) time.Time {
	q.advance(now)
	if e := q.alarms.top(); e != nil {
		return timeOf(e.changes)
	}
	return time.Time{}
}

// Len counts the known jobs.
func (q *Queue) Len() int { return len(q.jobs) }

// Offered counts the known jobs that are not parked.
func (q *Queue) Offered() int { return q.offered }

// Unranked counts how often a policy could not rank a job, and says what was wrong the last time.
// Such jobs go last.
func (q *Queue) Unranked() (times int, last error) { return q.unranked, q.lastUnranked }

func (q *Queue) laneOf(j Job) *lane {
	for _, lane := range q.lanes {
		if lane.fits(j) {
			return lane
		}
	}
	return q.catchAll
}

// rank asks the policy, and puts last what it can't rank.
func (q *Queue) rank(l *lane, j Job) float64 {
	rank := l.policy.Rank(j)
	if !math.IsNaN(rank) {
		return rank
	}
	q.unranked++
	q.lastUnranked = fmt.Errorf("queue %s: policy %s: rank job %s: not a number", l.name,
		l.policy.Name(), j.ID)
	if explainer, ok := l.policy.(Explainer); ok {
		q.lastUnranked = fmt.Errorf("queue %s: policy %s: rank job %s: %w", l.name, l.policy.Name(),
			j.ID, explainer.Fault())
	}
	return math.Inf(1)
}

// pick asks the arbiter which of the named queues that offer something is served.
func (q *Queue) pick() *lane {
	q.contenders, q.contending = q.contenders[:0], q.contending[:0]
	for _, lane := range q.lanes {
		if lane.offered > 0 {
			q.contenders = append(q.contenders, Contender{lane.name, lane.weight, lane.served})
			q.contending = append(q.contending, lane)
		}
	}
	return q.contending[q.arbiter.Pick(q.contenders)]
}

// offer puts an enlisted entry where Next finds it.
func (q *Queue) offer(e *entry) {
	q.offered++
	e.lane.offered++
	if e.lane.offered == 1 {
		e.lane.served = max(e.lane.served, q.share*e.lane.weight)
	}
	e.lane.offer(e)
	q.setAlarm(e)
}

func (q *Queue) withdraw(e *entry) {
	q.offered--
	e.lane.offered--
	e.lane.withdraw(e)
	q.unsetAlarm(e)
}

func (q *Queue) setAlarm(e *entry) {
	if e.changes != never {
		q.alarms.push(e)
	}
}

func (q *Queue) unsetAlarm(e *entry) {
	if e.alarm >= 0 {
		q.alarms.remove(e)
	}
}

// advance moves the jobs whose time has come to their new class.
func (q *Queue) advance(now time.Time) {
	q.now = max(q.now, instant(now.UnixMicro()))
	for e := q.alarms.top(); e != nil && e.changes <= q.now; e = q.alarms.top() {
		q.alarms.remove(e)
		e.lane.withdraw(e)
		e.lane.dismiss(e)
		class, changes := e.lane.classify(e.job, q.now)
		e.lane.enlist(e, class, changes)
		e.lane.offer(e)
		q.setAlarm(e)
	}
}
