package simulator

import "time"

// eventQueue holds the events to come, the earliest first; at the same instant, in the order in
// which they were added.
type eventQueue struct {
	events   []event
	sequence uint64
}

type event struct {
	at    int64 // nanoseconds of Unix time, which compare faster than a time.Time
	order uint64
	do    func()
}

func (e *event) before(o *event) bool {
	if e.at != o.at {
		return e.at < o.at
	}
	return e.order < o.order
}

// add schedules an event.
func (a *eventQueue) add(at time.Time, do func()) {
	fresh := event{at: at.UnixNano(), order: a.sequence, do: do}
	a.sequence++
	a.events = append(a.events, fresh)
	h, i := a.events, len(a.events)-1
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

// next removes the first event that is due by an instant.
func (a *eventQueue) next(by time.Time) (at time.Time, do func(), ok bool) {
	h := a.events
	if len(h) == 0 || h[0].at > by.UnixNano() {
		return time.Time{}, nil, false
	}
	first, last := h[0], len(h)-1
	moved := h[last]
	h[last] = event{} // for the garbage collector
	a.events = h[:last]
	h = a.events
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
