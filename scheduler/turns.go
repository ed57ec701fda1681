package scheduler

import (
	"container/list"
	"math"

	"github.com/tidefill/tidefill/internal/portable"
)

// turns is deficit round robin between tenants. The tenant at the front has the turn, with a credit
// of work; it keeps the turn until its credit is used up, then goes to the back, and the next one
// gets a quantum on top of what it still owes. Since a line is started as soon as there is any
// credit, a tenant may overdraw by one line, which its next turn pays back.
//
// A tenant with nothing to offer keeps its place until the turn comes to it, and is then left out.
// Credit left from an interrupted turn, never more than one quantum, it keeps while it has jobs at
// all, and when it comes back, the turn goes on where it was. So a job that is parked for a moment
// between two of its chunks costs its tenant nothing. A turn that has not begun is not kept: who
// was away that long comes back to the end of the line, so parking gains nothing either.
type turns struct {
	cfg     *Config
	tenants map[string]*tenant
	order   list.List // of *tenant; the front one offers something and has credit
}

type tenant struct {
	name    string
	quantum float64
	credit  float64
	known   int // jobs, parked ones included; at 0 the tenant is forgotten
	line    heap
	turn    *list.Element // in turns.order; nil if left out
}

// mostWork bounds a single charge, so that sums stay finite: 30,000 years of one engine.
const mostWork = 1e15

func newTurns(cfg *Config) *turns {
	return &turns{cfg: cfg, tenants: map[string]*tenant{}}
}

// enlist counts one more job of the tenant.
func (ts *turns) enlist(name string) *tenant {
	t := ts.tenants[name]
	if t == nil {
		weight, set := ts.cfg.TenantWeights[name]
		if !set {
			weight = 1
		}
		t = &tenant{name: name, quantum: ts.cfg.Quantum * weight, line: newLine()}
		ts.tenants[name] = t
	}
	t.known++
	return t
}

// dismiss counts one less.
func (ts *turns) dismiss(t *tenant) {
	t.known--
	if t.known == 0 {
		ts.leaveOut(t)
		delete(ts.tenants, t.name)
	}
}

func (ts *turns) leaveOut(t *tenant) {
	if t.turn != nil {
		ts.order.Remove(t.turn)
		t.turn = nil
	}
}

// offer adds e to its tenant's line.
func (ts *turns) offer(e *entry) {
	t := e.tenant
	t.line.push(e)
	switch {
	case t.turn != nil:
	case t.credit > 0:
		t.turn = ts.order.PushFront(t)
	default:
		t.turn = ts.order.PushBack(t)
	}
	ts.settle()
}

// withdraw takes e out of its tenant's line.
func (ts *turns) withdraw(e *entry) {
	e.tenant.line.remove(e)
	ts.settle()
}

// top is the entry whose line goes next; nil if nothing is offered.
func (ts *turns) top() *entry {
	if ts.order.Len() == 0 {
		return nil
	}
	return ts.order.Front().Value.(*tenant).line.top()
}

// charge takes work off the tenant's credit, and ends its turn when that is used up.
func (ts *turns) charge(t *tenant, work float64) {
	had := t.credit > 0
	t.credit -= work
	if had && t.credit <= 0 && t.turn != nil {
		ts.order.MoveToBack(t.turn)
	}
	ts.settle()
}

// settle gives the turn to the first tenant that offers something and whose quantum exceeds what it
// owes. When all owe more than a quantum, the rounds in which nobody could start anything are
// granted in one go.
func (ts *turns) settle() {
	for granted := 0; ts.order.Len() > 0; {
		t := ts.order.Front().Value.(*tenant)
		if t.line.top() == nil {
			ts.leaveOut(t)
			continue
		}
		if t.credit > 0 {
			return
		}
		t.credit += t.quantum
		if t.credit > 0 {
			return
		}
		ts.order.MoveToBack(t.turn)
		granted++
		if granted%ts.order.Len() == 0 { // all have been granted one and owe still
			ts.skipRounds()
		}
	}
}

// skipRounds grants every tenant as many quanta as all can take without any having credit.
func (ts *turns) skipRounds() {
	rounds := math.Inf(1)
	for e := ts.order.Front(); e != nil; e = e.Next() {
		t := e.Value.(*tenant)
		rounds = min(rounds, math.Floor(-t.credit/t.quantum))
	}
	for e := ts.order.Front(); e != nil; e = e.Next() {
		t := e.Value.(*tenant)
		t.credit = min(t.credit+portable.Rounded(rounds*t.quantum), 0)
	}
}
