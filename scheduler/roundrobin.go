package scheduler

import (
	"container/list"
	"math"

	"github.com/tidefill/tidefill/internal/portable"
)

// roundRobin is deficit round robin between tenants. The tenant at the front has the turn and a
// credit of work. It has the turn until its credit is used up, then goes to the back, and the next
// tenant gets a quantum in addition to its credit, which may be negative. A line starts as soon as
// there is any credit, so a tenant may overdraw by one line, which its next turn pays back.
//
// A tenant without a job to offer keeps its place until its turn comes, and is then skipped. While
// it has any jobs, it keeps the credit of an interrupted turn, at most one quantum, and continues
// the turn when it offers a job again. So a job that is parked for a moment between two of its
// chunks costs its tenant nothing. A turn that has not begun is not kept: the tenant comes back at
// the end, so parking gains nothing either.
type roundRobin struct {
	cfg     *Config
	tenants map[string]*tenant
	order   list.List // of *tenant; the front one has a job to offer and credit
}

type tenant struct {
	name    string
	quantum float64
	credit  float64
	known   int // number of jobs, parked ones included; at 0 the tenant is removed
	jobs    heap
	turn    *list.Element // in roundRobin.order; nil if skipped
}

// maxWork limits a single charge, so that sums stay finite: 30,000 years of one engine.
const maxWork = 1e15

func newRoundRobin(cfg *Config) *roundRobin {
	return &roundRobin{cfg: cfg, tenants: map[string]*tenant{}}
}

// addJob counts a job of a tenant.
func (rr *roundRobin) addJob(name string) *tenant {
	t := rr.tenants[name]
	if t == nil {
		weight, set := rr.cfg.TenantWeights[name]
		if !set {
			weight = 1
		}
		t = &tenant{name: name, quantum: rr.cfg.Quantum * weight, jobs: newRankHeap()}
		rr.tenants[name] = t
	}
	t.known++
	return t
}

// removeJob uncounts a job of a tenant.
func (rr *roundRobin) removeJob(t *tenant) {
	t.known--
	if t.known == 0 {
		rr.skip(t)
		delete(rr.tenants, t.name)
	}
}

func (rr *roundRobin) skip(t *tenant) {
	if t.turn != nil {
		rr.order.Remove(t.turn)
		t.turn = nil
	}
}

// offer adds e to the jobs of its tenant.
func (rr *roundRobin) offer(e *entry) {
	t := e.tenant
	t.jobs.push(e)
	switch {
	case t.turn != nil:
	case t.credit > 0:
		t.turn = rr.order.PushFront(t)
	default:
		t.turn = rr.order.PushBack(t)
	}
	rr.nextTurn()
}

// withdraw removes e from the jobs of its tenant.
func (rr *roundRobin) withdraw(e *entry) {
	e.tenant.jobs.remove(e)
	rr.nextTurn()
}

// top returns the job whose line goes next. Nil: none is offered.
func (rr *roundRobin) top() *entry {
	if rr.order.Len() == 0 {
		return nil
	}
	return rr.order.Front().Value.(*tenant).jobs.top()
}

// charge subtracts work from the tenant's credit, and ends its turn if that is used up.
func (rr *roundRobin) charge(t *tenant, work float64) {
	had := t.credit > 0
	t.credit -= work
	if had && t.credit <= 0 && t.turn != nil {
		rr.order.MoveToBack(t.turn)
	}
	rr.nextTurn()
}

// nextTurn gives the turn to the first tenant that has a job to offer and whose credit is positive
// after its quantum. If all owe more than a quantum, it grants the rounds without any start at
// once.
func (rr *roundRobin) nextTurn() {
	for granted := 0; rr.order.Len() > 0; {
		t := rr.order.Front().Value.(*tenant)
		if t.jobs.top() == nil {
			rr.skip(t)
			continue
		}
		if t.credit > 0 {
			return
		}
		t.credit += t.quantum
		if t.credit > 0 {
			return
		}
		rr.order.MoveToBack(t.turn)
		granted++
		if granted%rr.order.Len() == 0 { // all got one and still owe
			rr.skipRounds()
		}
	}
}

// skipRounds grants every tenant the number of quanta after which none has a positive credit yet.
func (rr *roundRobin) skipRounds() {
	rounds := math.Inf(1)
	for e := rr.order.Front(); e != nil; e = e.Next() {
		t := e.Value.(*tenant)
		rounds = min(rounds, math.Floor(-t.credit/t.quantum))
	}
	for e := rr.order.Front(); e != nil; e = e.Next() {
		t := e.Value.(*tenant)
		t.credit = min(t.credit+portable.Rounded(rounds*t.quantum), 0)
	}
}
