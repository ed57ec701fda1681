package plan

import "time"

// runner is one model server: what it carries, what it may carry and whether it answers.
type runner struct {
	id       string
	models   []string
	pool     *pool
	gone     bool
	inFlight int
	limit    int

	// The breaker. Closed: failures counts those in a row. Open until openUntil; after that one trial line goes, and
	// its end decides.
	failures  int
	open      bool
	openUntil time.Time
	openings  int
	trial     bool
}

// room is how many more lines may start on the runner now.
func (r *runner) room(now time.Time) int {
	if r.open {
		if r.trial || r.openUntil.After(now) {
			return 0
		}
		return min(1, r.limit-r.inFlight)
	}
	return r.limit - r.inFlight
}

// succeed closes the breaker.
func (r *runner) succeed() {
	r.failures, r.openings, r.open, r.trial = 0, 0, false, false
}

// fail counts a failure and reports when the runner may be tried again, if that opened the breaker.
func (r *runner) fail(now time.Time, cfg BreakerConfig) (openUntil time.Time, opened bool) {
	r.failures++
	if r.open && !r.trial {
		return time.Time{}, false // one of those that were under way when it opened
	}
	if !r.open && r.failures < cfg.Failures {
		return time.Time{}, false
	}
	r.open, r.trial = true, false
	r.openUntil = now.Add(doubling(cfg.Base, cfg.Max, r.openings))
	r.openings++
	return r.openUntil, true
}
