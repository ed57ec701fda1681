package plan

import (
	"math"
	"time"
)

// breaker keeps lines from a runner that does not answer. Closed, it counts failures in a row.
// Open, it lets nothing through until a pause is over, and after that one trial line at a time,
// whose end decides. Lines that were under way when it opened may close it, since an answer is an
// answer, but don't open it any longer: they tell of the past.
type breaker struct {
	failures int // in a row
	openings int // in a row
	open     bool
	until    time.Time // when the next trial may start
	trial    uint32    // the number of the trial under way; 0: none
	trials   uint32
}

// admits is how many lines may start now.
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

// start notes that a line goes out, and returns its number if it is a trial.
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

// pass notes that a line ended without telling whether the runner answers.
func (b *breaker) pass(trial uint32) {
	if b.isTrial(trial) {
		b.trial = 0
	}
}

// fail counts a failure and reports when the runner may be tried again, if that opened the breaker.
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

// isTrial reports whether a line of that number is the trial under way.
func (b *breaker) isTrial(trial uint32) bool { return trial != 0 && trial == b.trial }
