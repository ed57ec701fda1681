package scheduler_test

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/scheduler"
)

// slowQueue is a simple implementation of the queue to compare with: everything is a list and every
// result a scan.
type slowQueue struct {
	cfg    scheduler.Config
	queues []scheduler.QueueConfig
	ranks  []scheduler.Policy
	jobs   []*slowJob
	now    time.Time
	rings  map[ring]*slowRing
	served []float64
	share  float64
}

type slowJob struct {
	scheduler.Job
	rank   float64
	queue  int
	class  scheduler.Class
	parked bool
}

// ring identifies the regular or the late jobs of a named queue.
type ring struct {
	queue int
	class scheduler.Class
}

// slowRing is the shares of the tenants of a ring, and those of the jobs of each tenant.
type slowRing struct {
	ranked  bool
	tenants *slowShare
	jobs    map[string]*slowShare
}

func newSlowQueue(cfg scheduler.Config) *slowQueue {
	q := &slowQueue{cfg: cfg, queues: slices.Clone(cfg.Queues), rings: map[ring]*slowRing{}}
	if !slices.ContainsFunc(q.queues, func(qc scheduler.QueueConfig) bool {
		return qc.Name == scheduler.DefaultQueue
	}) {
		q.queues = append(q.queues, scheduler.QueueConfig{Name: scheduler.DefaultQueue})
	}
	for i, qc := range q.queues {
		policy, err := scheduler.NewPolicy(cmp.Or(qc.Policy, cfg.Policy), cfg)
		if err != nil {
			panic(err)
		}
		q.ranks = append(q.ranks, policy)
		q.served = append(q.served, 0)
		for _, class := range []scheduler.Class{scheduler.Regular, scheduler.Late} {
			r := &slowRing{
				ranked:  q.cfg.Urgency == scheduler.UrgencyNever || !deadlineAware(policy.Name()),
				tenants: newSlowShare(cfg.Quantum, true), jobs: map[string]*slowShare{}}
			r.tenants.eager = func(tenant string) bool {
				jobs := r.jobs[tenant]
				if r.ranked || jobs == nil {
					return false
				}
				top := jobs.find(jobs.top(q.sharedBefore))
				return top != nil && jobs.young(top)
			}
			q.rings[ring{i, class}] = r
		}
	}
	return q
}

func (q *slowQueue) queueOf(j scheduler.Job) int {
	for i, qc := range q.queues {
		for _, m := range qc.Match {
			if glob(m.Tenants, j.Tenant) && glob(m.Models, j.Model) &&
				(m.MinPriority == nil || j.Priority >= *m.MinPriority) && (m.MaxPriority == nil ||
				j.Priority <= *m.MaxPriority) &&
				(m.MinWindow == 0 || j.Window == 0 || j.Window >= m.MinWindow) &&
				(m.MaxWindow == 0 || j.Window > 0 && j.Window <= m.MaxWindow) {
				return i
			}
		}
	}
	return slices.IndexFunc(q.queues, func(qc scheduler.QueueConfig) bool {
		return qc.Name == scheduler.DefaultQueue
	})
}

func glob(patterns []string, name string) bool {
	for _, p := range patterns {
		if ok, _ := path.Match(p, name); ok {
			return true
		}
	}
	return len(patterns) == 0
}

// classAt returns the class of a job at now, and the time of its next change.
func (q *slowQueue) classAt(
	queue int, j scheduler.Job, now time.Time,
) (scheduler.Class, time.Time) {
	var urgent time.Time
	urgency := false
	name := q.ranks[queue].Name()
	if q.cfg.Urgency == scheduler.UrgencyAlways || q.cfg.Urgency == scheduler.UrgencyAuto &&
		deadlineAware(name) {
		urgency = true
		for _, due := range []time.Time{j.Deadline, j.DoneBy} {
			rate := j.Rate
			if rate == 0 {
				rate = q.cfg.AssumedRate
			}
			start := due.Add(-time.Duration(1.5 * j.Work / rate * 1e9))
			if !due.IsZero() && (urgent.IsZero() || start.Before(urgent)) {
				urgent = start
			}
		}
		if !j.StartBy.IsZero() && (urgent.IsZero() || j.StartBy.Before(urgent)) {
			urgent = j.StartBy
		}
		if !urgent.IsZero() {
			urgent = urgent.Add(-max(q.cfg.GuardMin, time.Duration(0.1*float64(
				j.Window))))
		}
	}
	switch {
	case !j.Deadline.IsZero() && !now.Before(j.Deadline), urgency && j.Infeasible:
		return scheduler.Late, time.Time{}
	case !urgent.IsZero() && !now.Before(urgent):
		return scheduler.Urgent, j.Deadline
	case !urgent.IsZero() && (j.Deadline.IsZero() || urgent.Before(j.Deadline)):
		return scheduler.Regular, urgent
	default:
		return scheduler.Regular, j.Deadline
	}
}

func deadlineAware(policy string) bool { return policy == "edf" || policy == "slack" }

func (q *slowQueue) find(id string) *slowJob {
	for _, j := range q.jobs {
		if j.ID == id {
			return j
		}
	}
	return nil
}

func (q *slowQueue) Put(job scheduler.Job) {
	queue := q.queueOf(job)
	class, _ := q.classAt(queue, job, q.now)
	fresh := &slowJob{Job: job, rank: q.ranks[queue].Rank(job), queue: queue, class: class}
	if j := q.find(job.ID); j != nil {
		fresh.parked = j.parked
		if j.queue == queue && j.class == class && j.Tenant == job.Tenant {
			*j = *fresh
			return
		}
		q.Remove(job.ID)
	}
	q.add(fresh)
}

func (q *slowQueue) add(j *slowJob) {
	if !j.parked && !slices.ContainsFunc(q.jobs, func(o *slowJob) bool {
		return o.queue == j.queue && !o.parked
	}) {
		q.served[j.queue] = max(q.served[j.queue], q.share*q.weight(j.queue))
	}
	q.jobs = append(q.jobs, j)
	q.sync()
}

func (q *slowQueue) weight(queue int) float64 { return cmp.Or(q.queues[queue].Weight, 1) }

func (q *slowQueue) Park(id string) {
	if j := q.find(id); j != nil {
		j.parked = true
		q.sync()
	}
}

func (q *slowQueue) Unpark(id string) {
	if j := q.find(id); j != nil && j.parked {
		j.parked = false
		others := slices.ContainsFunc(q.jobs, func(o *slowJob) bool {
			return o != j && o.queue == j.queue && !o.parked
		})
		if !others {
			q.served[j.queue] = max(q.served[j.queue], q.share*q.weight(j.queue))
		}
		q.sync()
	}
}

func (q *slowQueue) Remove(id string) {
	q.jobs = slices.DeleteFunc(q.jobs, func(j *slowJob) bool { return j.ID == id })
	q.sync()
}

func (q *slowQueue) Charge(id string, work float64) {
	j := q.find(id)
	if j == nil {
		return
	}
	q.share = max(q.share, q.served[j.queue]/q.weight(j.queue))
	q.served[j.queue] += work
	if r := q.rings[ring{j.queue, j.class}]; r != nil {
		r.tenants.charge(j.Tenant, work, q.tenantWeight(j.Tenant), r.tenants.arrivedBefore)
		if !r.ranked {
			r.jobs[j.Tenant].charge(j.ID, work, 1, q.sharedBefore)
		}
	}
}

func (q *slowQueue) tenantWeight(tenant string) float64 {
	if weight, set := q.cfg.TenantWeights[tenant]; set {
		return weight
	}
	return 1
}

// sync updates the rings after a change of the jobs.
func (q *slowQueue) sync() {
	for at, r := range q.rings {
		tenants, jobs := map[string]bool{}, map[string]map[string]bool{}
		for _, j := range q.jobs {
			if j.queue == at.queue && j.class == at.class {
				tenants[j.Tenant] = tenants[j.Tenant] || !j.parked
				if jobs[j.Tenant] == nil {
					jobs[j.Tenant] = map[string]bool{}
				}
				jobs[j.Tenant][j.ID] = !j.parked
			}
		}
		r.tenants.sync(tenants)
		for tenant := range jobs {
			if r.jobs[tenant] == nil {
				r.jobs[tenant] = newSlowShare(q.cfg.Quantum, false)
			}
		}
		for tenant, share := range r.jobs {
			share.sync(jobs[tenant])
		}
	}
}

// top returns the job of a ring that is next. Nil: none is offered.
func (q *slowQueue) top(at ring) *slowJob {
	r := q.rings[at]
	tenant := r.tenants.top(r.tenants.arrivedBefore)
	if tenant == "" {
		return nil
	}
	if !r.ranked {
		return q.find(r.jobs[tenant].top(q.sharedBefore))
	}
	return q.first(func(j *slowJob) bool {
		return j.queue == at.queue && j.class == at.class && j.Tenant == tenant
	})
}

// first returns the offered job with the first rank, of those that match.
func (q *slowQueue) first(match func(*slowJob) bool) (top *slowJob) {
	for _, j := range q.jobs {
		if !j.parked && match(j) && (top == nil || before(j, top)) {
			top = j
		}
	}
	return top
}

// advance moves one job after the other, as their times come.
func (q *slowQueue) advance(now time.Time) {
	q.now = now
	for {
		var first *slowJob
		var at time.Time
		for _, j := range q.jobs {
			if class, _ := q.classAt(j.queue, j.Job, now); class == j.class || j.parked {
				continue
			}
			when := q.changed(j)
			if first == nil || when.Before(at) || when.Equal(at) && j.ID < first.ID {
				first, at = j, when
			}
		}
		if first == nil {
			return
		}
		q.jobs = slices.DeleteFunc(q.jobs, func(j *slowJob) bool { return j == first })
		q.sync()
		first.class, _ = q.classAt(first.queue, first.Job, now)
		q.jobs = append(q.jobs, first)
		q.sync()
	}
}

// changed is when the class that j was last seen in ended.
func (q *slowQueue) changed(j *slowJob) time.Time {
	if j.class == scheduler.Urgent {
		return j.Deadline
	}
	_, when := q.classAt(j.queue, j.Job, time.Unix(0, 0))
	return when
}

func (q *slowQueue) Wake(now time.Time) time.Time {
	q.advance(now)
	var soonest time.Time
	for _, j := range q.jobs {
		if _, when := q.classAt(j.queue, j.Job, now); !j.parked && !when.IsZero() &&
			(soonest.IsZero() || when.Before(soonest)) {
			soonest = when
		}
	}
	return soonest
}

func (q *slowQueue) Next(now time.Time) (string, bool) {
	q.advance(now)
	best := -1
	for i := range q.queues {
		offers := slices.ContainsFunc(q.jobs, func(j *slowJob) bool {
			return j.queue == i && !j.parked
		})
		switch {
		case !offers:
		case best < 0:
			best = i
		case q.cfg.BetweenQueues == "weighted" && q.served[i]*q.weight(
			best) < q.served[best]*q.weight(i):
			best = i
		}
	}
	top := q.first(func(j *slowJob) bool { return j.queue == best && j.class == scheduler.Urgent })
	for _, class := range []scheduler.Class{scheduler.Regular, scheduler.Late} {
		if top == nil && best >= 0 {
			top = q.top(ring{best, class})
		}
	}
	if top == nil {
		return "", false
	}
	return top.ID, true
}

func before(a, b *slowJob) bool {
	rank := func(j *slowJob) float64 {
		if math.IsNaN(j.rank) {
			return math.Inf(1)
		}
		return j.rank
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Priority, a.Priority),
		a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID)) < 0
}

func (q *slowQueue) sharedBefore(a, b string) bool {
	x, y := q.find(a), q.find(b)
	if x.Priority != y.Priority {
		return x.Priority > y.Priority
	}
	return before(x, y)
}
