package engine

import (
	"slices"
	"time"
)

// scheduleRunning assigns the next tokens to each running request, and preempts requests while too
// few blocks are free. It returns the rest of the budget.
func (e *Engine) scheduleRunning(budget int) int {
	for i := 0; i < len(e.running); i++ {
		s := e.running[i]
		s.scheduled = 0
		tokens := min(s.known-s.computed, budget)
		if tokens == 0 {
			continue
		}
		need := blocksFor(s.computed+tokens) - s.blocks()
		for need > e.kv.available() {
			victim := e.worst()
			if victim <= i { // it moves the following ones down
				budget += e.running[victim].scheduled
				i--
			}
			if e.preempt(victim) == s {
				need, tokens = 0, 0
			}
		}
		if need > 0 {
			e.kv.take(need)
			s.private += need
		}
		s.scheduled = tokens
		budget -= tokens
	}
	return budget
}

// worst returns the index of the running request to preempt first.
func (e *Engine) worst() int {
	worst := 0
	for i, s := range e.running {
		if e.running[worst].before(s) {
			worst = i
		}
	}
	return worst
}

func (e *Engine) preempt(index int) *sequence {
	s := e.running[index]
	e.running = slices.Delete(e.running, index, index+1)
	e.report.Preempted = append(e.report.Preempted, s.loss())
	e.kv.release(s)
	e.pending += s.computed
	if !s.prefilling {
		s.lastToken = e.previousEnd
	}
	s.computed, s.scheduled, s.prefilling = 0, 0, true
	s.preemptions++
	e.counters.Preemptions++
	e.waiting.add(s)
	return s
}

// admit admits waiting requests in order, while there is a slot, budget, and memory for all their
// known tokens. It stops at the first that does not fit.
func (e *Engine) admit(now time.Time, budget int) {
	for len(e.waiting) > 0 && len(e.running) < e.cfg.Profile.MaxSeqs && budget > 0 {
		s := e.waiting[0]
		// The last known token is always computed, because the next one follows from it.
		hits, idle := e.kv.cachedPrefix(s.Prefix[:min(len(s.Prefix), (s.known-1)/BlockSize)])
		need := blocksFor(s.known) - hits
		reserve := int(watermark * float64(e.kv.total))
		if len(e.running) == 0 {
			reserve = 0
		}
		if e.kv.available()-idle-need < reserve {
			return
		}
		e.waiting.remove(s)
		for _, h := range s.Prefix[:hits] {
			e.kv.refer(h)
		}
		e.kv.take(need)
		s.shared, s.private = hits, need
		s.computed = hits * BlockSize
		s.found = s.computed
		e.pending -= s.computed
		if s.admitted.IsZero() {
			s.admitted = now
			s.cached = s.computed
			if e.cfg.PrefixCaching {
				e.counters.PrefixQueries += uint64(s.Prompt)
				e.counters.PrefixHits += uint64(s.cached)
			}
		}
		s.scheduled = min(s.known-s.computed, budget)
		budget -= s.scheduled
		e.running = append(e.running, s)
		e.report.Admitted = append(e.report.Admitted, Admission{ID: s.ID, Cached: s.computed})
	}
}
