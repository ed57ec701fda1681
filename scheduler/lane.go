package scheduler

import (
	"slices"
	"time"
)

// lane is one named queue: its rules, its policy and its jobs in three classes.
type lane struct {
	name       string
	match      []Match
	policy     Policy
	weight     float64
	urgency    bool
	guardMin   instant
	guardShare float64
	assumed    float64

	urgent  heap
	regular *turns
	late    *turns

	offered int     // jobs not parked
	served  float64 // work started, lifted on return so that no share is saved up
}

func newLane(qc QueueConfig, cfg *Config) (*lane, error) {
	own := cfg.of(qc)
	policy, err := NewPolicy(own.Policy, own)
	if err != nil {
		return nil, err
	}
	_, aware := policy.(DeadlineAware)
	l := &lane{
		name:       qc.Name,
		match:      qc.Match,
		policy:     policy,
		weight:     qc.Weight,
		urgency:    own.Urgency == UrgencyAlways || own.Urgency == UrgencyAuto && aware,
		guardMin:   microseconds(cfg.GuardMin),
		guardShare: cfg.GuardShare,
		assumed:    cfg.AssumedRate,
		urgent:     newLine(),
		regular:    newTurns(cfg),
		late:       newTurns(cfg),
	}
	if l.weight == 0 {
		l.weight = 1
	}
	return l, nil
}

func microseconds(d time.Duration) instant { return instant(d) / 1e3 }

func (l *lane) fits(j Job) bool {
	return slices.ContainsFunc(l.match, func(m Match) bool { return m.fits(j) })
}

// classify says what class a job has at now, and when time alone will change that.
func (l *lane) classify(j Job, now instant) (Class, instant) {
	deadline, urgent := instantOf(j.Deadline), never
	if l.urgency {
		urgent = j.latestStart(l.assumed) - max(l.guardMin, l.guardShare*microseconds(j.Window))
	}
	switch {
	case now >= deadline, j.Infeasible && l.urgency:
		return Late, never
	case now >= urgent:
		return Urgent, deadline
	default:
		return Regular, min(urgent, deadline)
	}
}

// turnsOf are the turns that jobs of a class take; nil for the urgent, who take none.
func (l *lane) turnsOf(c Class) *turns {
	switch c {
	case Regular:
		return l.regular
	case Late:
		return l.late
	}
	return nil
}

// enlist makes e a job of this lane in the given class.
func (l *lane) enlist(e *entry, c Class, changes instant) {
	e.lane, e.class, e.changes = l, c, changes
	if turns := l.turnsOf(c); turns != nil {
		e.tenant = turns.enlist(e.job.Tenant)
	}
}

func (l *lane) dismiss(e *entry) {
	if turns := l.turnsOf(e.class); turns != nil {
		turns.dismiss(e.tenant)
		e.tenant = nil
	}
}

// offer puts an enlisted entry into the line of its class.
func (l *lane) offer(e *entry) {
	if turns := l.turnsOf(e.class); turns != nil {
		turns.offer(e)
	} else {
		l.urgent.push(e)
	}
}

func (l *lane) withdraw(e *entry) {
	if turns := l.turnsOf(e.class); turns != nil {
		turns.withdraw(e)
	} else {
		l.urgent.remove(e)
	}
}

// fix restores the line of e after its rank has changed.
func (l *lane) fix(e *entry) {
	if e.tenant != nil {
		e.tenant.line.fix(e)
	} else {
		l.urgent.fix(e)
	}
}

// top is the entry whose line goes next; nil if nothing is offered.
func (l *lane) top() *entry {
	if e := l.urgent.top(); e != nil {
		return e
	}
	if e := l.regular.top(); e != nil {
		return e
	}
	return l.late.top()
}

// charge accounts started work. An urgent job's work is not held against its tenant: its deadline,
// not its turn, chose it.
func (l *lane) charge(e *entry, work float64) {
	l.served += work
	if turns := l.turnsOf(e.class); turns != nil {
		turns.charge(e.tenant, work)
	}
}
