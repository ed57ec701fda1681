package plan

import (
	"math"
	"time"
)

// breaker stops lines to a runner that does not answer. Closed, it counts failures in a row. Open,
// it admits no line until a pause is over, and then one trial line at a time. An answer closes it,
// also that of a line that was in flight when it opened. Failures of such lines do not prolong the
// pause, because they are about the past.
type breaker struct {
	failures int // in a row
	openings int // in a row
	open     bool
	until    time.Time // when the next trial may start
	trial    uint32    // number of the trial in flight; 0: none
	trials   uint32
}

// admits returns how many lines may start now.
func (b *breaker) admits(now time.Time) int {
	switch {
	case !b.open:
		return math.MaxInt
	case b.trial != 0 || b.until.After(now):
		return 0
	default:
		return 1
	}
}

// start counts a line that starts. It returns the number of the trial, or 0 if it is none.
func (b *breaker) start() (trial uint32) {
	if b.open {
		b.trials++
		b.trial = b.trials
	}
	return b.trial
}

// succeed closes the breaker.
func (b *breaker) succeed() {
	b.failures, b.openings, b.open, b.trial = 0, 0, false, 0
}

// pass ends a line that does not show whether the runner answers.
func (b *breaker) pass(trial uint32) {
	if b.isTrial(trial) {
		b.trial = 0
	}
}

// fail counts a failure. If that opens the breaker, it returns when the next trial may start.
func (b *breaker) fail(
	now time.Time, cfg BreakerConfig, trial uint32,
) (until time.Time, opened bool) {
	b.failures++
	if b.open && !b.isTrial(trial) || !b.open && b.failures < cfg.Failures {
		return time.Time{}, false
	}
	b.open, b.trial = true, 0
	b.until = now.Add(doubling(cfg.Base, cfg.Max, b.openings))
	b.openings++
	return b.until, true
}

// isTrial reports whether the line with this trial number is the trial in flight.
func (b *breaker) isTrial(trial uint32) bool { return trial != 0 && trial == b.trial }
