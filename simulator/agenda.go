package simulator

import "time"

// agenda is what will happen, the soonest first; at the same instant, what was
// put down first.
type agenda struct {
	heap []entry
	next uint64
}

type entry struct {
	at    time.Time
	order uint64
	do    func()
}

func (e *entry) before(o *entry) bool {
	if c := e.at.Compare(o.at); c != 0 {
		return c < 0
	}
	return e.order < o.order
}

func (a *agenda) put(at time.Time, do func()) {
	a.heap = append(a.heap, entry{at: at, order: a.next, do: do})
	a.next++
	h, i := a.heap, len(a.heap)-1
	for parent := (i - 1) / 2; i > 0 && h[i].before(&h[parent]); parent = (i - 1) / 2 {
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

// take removes the first entry that is due by an instant.
func (a *agenda) take(by time.Time) (entry, bool) {
	h := a.heap
	if len(h) == 0 || h[0].at.After(by) {
		return entry{}, false
	}
	first, last := h[0], len(h)-1
	h[0], h[last] = h[last], entry{} // lets go of what the entry holds
	a.heap = h[:last]
	h = a.heap
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].before(&h[least]) {
				least = child
			}
		}
		if least == i {
			return first, true
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
