package scheduler

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/internal/heap"
)

// Queue orders the jobs of one pool. It is not safe for concurrent use. Every operation costs O(log
// n) in the number of jobs, except Snapshot.
//
// Its time is the latest argument of Next and Wake. An argument that is less than a minute earlier
// has no effect. One that is earlier still shows that the clock was wrong: it becomes the time, and
// all jobs are classified again.
type Queue struct {
	cfg      Config
	arbiter  Arbiter
	queues   []*namedQueue // in configured order
	fallback *namedQueue
	jobs     map[string]*entry
	changing heap.Heap[*entry] // offered jobs whose class will change
	now      instant
	offered  int

	// share is the work per weight of the queue charged last, which a queue with new jobs starts
	// from.
	share      float64
	contenders []Contender
	candidates []*namedQueue // in the order of contenders
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
	q := &Queue{cfg: cfg, arbiter: arbiter, jobs: map[string]*entry{}, changing: newChangeHeap(),
		now: math.Inf(-1)}
	listed := slices.Clone(cfg.Queues)
	if !slices.ContainsFunc(listed, func(qc QueueConfig) bool { return qc.Name == DefaultQueue }) {
		listed = append(listed, QueueConfig{Name: DefaultQueue})
	}
	for _, qc := range listed {
		nq, err := newNamedQueue(qc, &q.cfg)
		if err != nil {
			return nil, fmt.Errorf("queue %s: %w", qc.Name, err)
		}
		q.queues = append(q.queues, nq)
		if qc.Name == DefaultQueue {
			q.fallback = nq
		}
	}
	return q, nil
}

// Put adds a job, or ranks it again after a change. A new job is offered. A known one stays parked
// or offered.
func (q *Queue) Put(j Job) {
	nq := q.queueOf(j)
	class, changes := nq.classify(j, q.now)
	e := q.jobs[j.ID]
	switch {
	case e == nil:
		e = &entry{job: j, index: -1, changeIndex: -1}
		q.rank(nq, e)
		q.jobs[j.ID] = e
		nq.addJob(e, class, changes)
		q.offer(e)
	case e.queue == nq && e.class == class && e.job.Tenant == j.Tenant:
		e.job = j
		e.weigh()
		q.rank(nq, e)
		e.changes = changes
		if !e.parked {
			nq.fix(e)
			q.unwatchChange(e)
			q.watchChange(e)
		}
	default:
		if !e.parked {
			q.withdraw(e)
		}
		e.queue.removeJob(e)
		e.job = j
		q.rank(nq, e)
		nq.addJob(e, class, changes)
		if !e.parked {
			q.offer(e)
		}
	}
}

// Park stops offering a job that has no line to start now. Unknown jobs are ignored, here and
// below.
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
		q.offer(e) // the next advance moves it if its class has changed meanwhile
	}
}

// Remove removes a job.
func (q *Queue) Remove(id string) {
	e := q.jobs[id]
	if e == nil {
		return
	}
	if !e.parked {
		q.withdraw(e)
	}
	e.queue.removeJob(e)
	delete(q.jobs, id)
}

// Next returns the job whose line goes next. ok is false if no job is offered. Next has no visible
// effect: it returns the same until another method is called or time passes.
func (q *Queue) Next(now time.Time) (id string, ok bool) {
	q.advance(now)
	if q.offered == 0 {
		return "", false
	}
	return q.pick().top().job.ID, true
}

// Urgent reports whether a job was urgent at the last Next.
func (q *Queue) Urgent(id string) bool {
	e := q.jobs[id]
	return e != nil && e.class == Urgent
}

// Charge counts the work of a started line for the job's tenant and for its named queue. Work that
// is not above 0 is ignored.
func (q *Queue) Charge(id string, work float64) {
	e := q.jobs[id]
	if e == nil || !(work > 0) {
		return
	}
	q.share = max(q.share, e.queue.served/e.queue.weight)
	e.queue.charge(e, min(work, maxWork))
}

// Wake returns when time changes the order next, because a job becomes urgent or late. Zero: never.
func (q *Queue) Wake(now time.Time) time.Time {
	q.advance(now)
	if e := q.changing.Top(); e != nil {
		return timeOf(e.changes)
	}
	return time.Time{}
}

// Len returns the number of jobs.
func (q *Queue) Len() int { return len(q.jobs) }

// Offered returns the number of jobs that are not parked.
func (q *Queue) Offered() int { return q.offered }

// Fault returns why the policy could not rank a job, which then goes last. Nil: it could, or the
// job is unknown.
func (q *Queue) Fault(id string) error {
	if e := q.jobs[id]; e != nil {
		return e.fault
	}
	return nil
}

func (q *Queue) queueOf(j Job) *namedQueue {
	for _, nq := range q.queues {
		if nq.fits(j) {
			return nq
		}
	}
	return q.fallback
}

// rank ranks a job by the policy: +Inf, with a fault, if the policy cannot rank it.
func (q *Queue) rank(l *namedQueue, e *entry) {
	e.rank, e.fault = l.policy.Rank(e.job), nil
	if !math.IsNaN(e.rank) {
		return
	}
	e.rank, e.fault = math.Inf(1), fmt.Errorf("queue %s: policy %s: not a number", l.name,
		l.policy.Name())
	if explainer, ok := l.policy.(Explainer); ok {
		e.fault = fmt.Errorf("queue %s: policy %s: %w", l.name, l.policy.Name(), explainer.Fault())
	}
}

// pick returns the named queue that the arbiter chooses.
func (q *Queue) pick() *namedQueue {
	q.contenders, q.candidates = q.contenders[:0], q.candidates[:0]
	for _, nq := range q.queues {
		if nq.offered > 0 {
			q.contenders = append(q.contenders, Contender{nq.name, nq.weight, nq.served})
			q.candidates = append(q.candidates, nq)
		}
	}
	return q.candidates[q.arbiter.Pick(q.contenders)]
}

// offer makes an added entry available to Next.
func (q *Queue) offer(e *entry) {
	q.offered++
	e.queue.offered++
	if e.queue.offered == 1 {
		e.queue.served = max(e.queue.served, q.share*e.queue.weight)
	}
	e.queue.offer(e)
	q.watchChange(e)
}

func (q *Queue) withdraw(e *entry) {
	q.offered--
	e.queue.offered--
	e.queue.withdraw(e)
	q.unwatchChange(e)
}

func (q *Queue) watchChange(e *entry) {
	if e.changes != never {
		q.changing.Push(e)
	}
}

func (q *Queue) unwatchChange(e *entry) {
	if e.changeIndex >= 0 {
		q.changing.Remove(e)
	}
}

// maxStepBack is the largest step back of the clock without an effect, as small corrections make
// it.
const maxStepBack = time.Minute

// advance moves jobs to their new classes as of now.
func (q *Queue) advance(now time.Time) {
	at := instant(now.UnixMicro())
	if at < q.now-microseconds(maxStepBack) {
		q.now = at
		for _, id := range slices.Sorted(maps.Keys(q.jobs)) {
			q.Put(q.jobs[id].job)
		}
	}
	q.now = max(q.now, at)
	for e := q.changing.Top(); e != nil && e.changes <= q.now; e = q.changing.Top() {
		q.changing.Remove(e)
		e.queue.withdraw(e)
		e.queue.removeJob(e)
		class, changes := e.queue.classify(e.job, q.now)
		e.queue.addJob(e, class, changes)
		e.queue.offer(e)
		q.watchChange(e)
	}
}
