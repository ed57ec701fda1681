package scheduler

import (
	"slices"
	"time"

	"github.com/tidefill/tidefill/internal/heap"
)

// namedQueue is one named queue: its rules, its policy, and its jobs in three classes.
type namedQueue struct {
	name       string
	match      []Match
	policy     Policy
	weight     float64
	urgency    bool
	guardMin   instant
	guardShare float64
	assumed    float64

	urgent  heap.Heap[*entry]
	regular *tenants
	late    *tenants

	offered int // jobs not parked
	// work started; raised when the queue has jobs again, so that it saves nothing up
	served float64
}

func newNamedQueue(qc QueueConfig, cfg *Config) (*namedQueue, error) {
	own := cfg.of(qc)
	policy, err := NewPolicy(own.Policy, own)
	if err != nil {
		return nil, err
	}
	_, aware := policy.(DeadlineAware)
	ranked := !aware || own.Urgency == UrgencyNever
	nq := &namedQueue{
		name:       qc.Name,
		match:      qc.Match,
		policy:     policy,
		weight:     qc.Weight,
		urgency:    own.Urgency == UrgencyAlways || own.Urgency == UrgencyAuto && aware,
		guardMin:   microseconds(cfg.GuardMin),
		guardShare: guardShare,
		assumed:    cfg.AssumedRate,
		urgent:     newRankHeap(),
		regular:    newTenants(cfg, ranked),
		late:       newTenants(cfg, ranked),
	}
	if nq.weight == 0 {
		nq.weight = 1
	}
	return nq, nil
}

func microseconds(d time.Duration) instant { return instant(d) / 1e3 }

func (nq *namedQueue) fits(j Job) bool {
	return slices.ContainsFunc(nq.match, func(m Match) bool { return m.fits(j) })
}

// classify returns the class of a job at an instant, and when time will change it.
func (nq *namedQueue) classify(j Job, now instant) (Class, instant) {
	deadline, urgent := instantOf(j.Deadline), never
	if nq.urgency {
		guard := max(nq.guardMin, nq.guardShare*microseconds(j.Window))
		urgent = j.urgentStart(nq.assumed) - guard
	}
	switch {
	case now >= deadline, j.Infeasible && nq.urgency:
		return Late, never
	case now >= urgent:
		return Urgent, deadline
	default:
		return Regular, min(urgent, deadline)
	}
}

// sharedBy returns the tenants of a class. Nil: urgent jobs do not share.
func (nq *namedQueue) sharedBy(c Class) *tenants {
	switch c {
	case Regular:
		return nq.regular
	case Late:
		return nq.late
	default:
		return nil
	}
}

// addJob adds e to this queue in a class.
func (nq *namedQueue) addJob(e *entry, c Class, changes instant) {
	e.queue, e.class, e.changes = nq, c, changes
	if tenants := nq.sharedBy(c); tenants != nil {
		tenants.addJob(e)
	}
}

func (nq *namedQueue) removeJob(e *entry) {
	if tenants := nq.sharedBy(e.class); tenants != nil {
		tenants.removeJob(e)
	}
}

// offer makes an added entry available to top.
func (nq *namedQueue) offer(e *entry) {
	if tenants := nq.sharedBy(e.class); tenants != nil {
		tenants.offer(e)
	} else {
		nq.urgent.Push(e)
	}
}

func (nq *namedQueue) withdraw(e *entry) {
	if tenants := nq.sharedBy(e.class); tenants != nil {
		tenants.withdraw(e)
	} else {
		nq.urgent.Remove(e)
	}
}

// fix restores the order after the rank or the priority of e has changed.
func (nq *namedQueue) fix(e *entry) {
	if tenants := nq.sharedBy(e.class); tenants != nil {
		tenants.fix(e)
	} else {
		nq.urgent.Fix(e)
	}
}

// top returns the job whose line goes next. Nil: none is offered.
func (nq *namedQueue) top() *entry {
	if e := nq.urgent.Top(); e != nil {
		return e
	}
	if e := nq.regular.top(); e != nil {
		return e
	}
	return nq.late.top()
}

// charge counts started work. The work of an urgent job is not charged to its tenant, because its
// deadline chose it, not its turn.
func (nq *namedQueue) charge(e *entry, work float64) {
	nq.served += work
	if tenants := nq.sharedBy(e.class); tenants != nil {
		tenants.charge(e, work)
	}
}
