package inline

import (
	"cmp"
	"container/list"
	"slices"
	"sync"
)

const (
	// maxAssigned limits the keys of a use case whose target is remembered. The one that was used
	// least recently is forgotten first.
	maxAssigned = 1 << 14
	// maxDraws limits the use cases of which anything is remembered.
	maxDraws = 1 << 12
)

// draws draws the targets of use cases.
type draws struct {
	mu    sync.Mutex
	cases map[string]*draw
}

// target returns a target of a use case. Requests with the same key get the same one; key 0 stands
// for none.
func (d *draws) target(u UseCase, key uint64) string {
	switch len(u.Targets) {
	case 0:
		return u.Name
	case 1:
		return u.Targets[0].Model
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	of := cmp.Or(u.Key, u.Name)
	known := d.cases[of]
	if known == nil {
		if d.cases == nil || len(d.cases) >= maxDraws {
			d.cases = make(map[string]*draw)
		}
		known = &draw{assigned: make(map[uint64]*list.Element)}
		d.cases[of] = known
	}
	known.configure(u.Targets)
	if key == 0 {
		return known.next()
	}
	return known.keep(key)
}

// draw draws targets in proportion to their weights, so that after any number of draws each is
// within a few of its share.
type draw struct {
	targets []drawnTarget
	total   float64 // of the weights

	assigned map[uint64]*list.Element // of *assignment
	recent   list.List                // the assignment that was used last is first
}

type drawnTarget struct {
	Target
	credit float64 // of draws without a key
	count  int     // keys that it has
	excess int     // keys that move to others when they come, since the weights have changed
}

type assignment struct {
	key   uint64
	model string
}

// configure follows a change of the weights. Of the keys, only as many move as must.
func (d *draw) configure(targets []Target) {
	if slices.EqualFunc(d.targets, targets, func(a drawnTarget, b Target) bool {
		return a.Target == b
	}) {
		return
	}
	before := d.targets
	d.targets, d.total = make([]drawnTarget, len(targets)), 0
	for i, t := range targets {
		d.targets[i].Target = t
		d.total += t.Weight
		if j := indexOf(before, t.Model); j >= 0 {
			d.targets[i].count = before[j].count
		}
	}
	keys := d.recent.Len()
	for i := range d.targets {
		t := &d.targets[i]
		t.excess = max(0, t.count-int(t.Weight/d.total*float64(keys)+0.5))
	}
}

func indexOf(targets []drawnTarget, model string) int {
	return slices.IndexFunc(targets, func(t drawnTarget) bool { return t.Model == model })
}

// next draws a target: each gains its weight, and the one that has most pays for all.
func (d *draw) next() string {
	best := -1
	for i := range d.targets {
		t := &d.targets[i]
		t.credit += t.Weight
		if t.Weight > 0 && (best < 0 || t.credit > d.targets[best].credit) {
			best = i
		}
	}
	d.targets[best].credit -= d.total
	return d.targets[best].Model
}

// keep returns the target of a key, and draws one for a new key: the one that lacks most of its
// share of the keys.
func (d *draw) keep(key uint64) string {
	if place, known := d.assigned[key]; known {
		d.recent.MoveToFront(place)
		a := place.Value.(*assignment)
		i := indexOf(d.targets, a.model)
		if i >= 0 && d.targets[i].excess == 0 {
			return a.model
		}
		if i >= 0 {
			d.targets[i].excess--
			d.targets[i].count--
		}
		a.model = d.lacking(d.recent.Len())
		return a.model
	}
	if d.recent.Len() >= maxAssigned {
		oldest := d.recent.Back()
		a := d.recent.Remove(oldest).(*assignment)
		delete(d.assigned, a.key)
		if i := indexOf(d.targets, a.model); i >= 0 {
			d.targets[i].count--
		}
	}
	a := &assignment{key, d.lacking(d.recent.Len() + 1)}
	d.assigned[key] = d.recent.PushFront(a)
	return a.model
}

// lacking returns the target that lacks most of its share of a number of keys, and counts one.
func (d *draw) lacking(keys int) string {
	best, most := -1, 0.0
	for i, t := range d.targets {
		lacks := t.Weight/d.total*float64(keys) - float64(t.count)
		if t.Weight > 0 && (best < 0 || lacks > most) {
			best, most = i, lacks
		}
	}
	d.targets[best].count++
	return d.targets[best].Model
}
