package simulator

import "time"

// agenda is what will happen, the soonest first; at the same instant, what was
// put down first.
type agenda struct {
	heap []entry
	next uint64
}

type entry struct {
	at    int64 // nanoseconds of Unix time, which compare faster than a time.Time
	order uint64
	do    func()
}

func (e *entry) before(o *entry) bool {
	if e.at != o.at {
		return e.at < o.at
	}
	return e.order < o.order
}

func (a *agenda) put(at time.Time, do func()) {
	fresh := entry{at: at.UnixNano(), order: a.next, do: do}
	a.next++
	a.heap = append(a.heap, fresh)
	h, i := a.heap, len(a.heap)-1
	for i > 0 {
		parent := (i - 1) / 2
		if !fresh.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = fresh
}

// take removes the first entry that is due by an instant.
func (a *agenda) take(by time.Time) (at time.Time, do func(), ok bool) {
	h := a.heap
	if len(h) == 0 || h[0].at > by.UnixNano() {
		return time.Time{}, nil, false
	}
	first, last := h[0], len(h)-1
	moved := h[last]
	h[last] = entry{} // lets go of what the entry holds
	a.heap = h[:last]
	h = a.heap
	for i := 0; last > 0; {
		child := 2*i + 1
		if child+1 < last && h[child+1].before(&h[child]) {
			child++
		}
		if child >= last || !h[child].before(&moved) {
			h[i] = moved
			break
		}
		h[i] = h[child]
		i = child
	}
	return time.Unix(0, first.at).UTC(), first.do, true
}
