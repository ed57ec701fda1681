package plan

import (
	"math"
	"time"
)

// breaker stops lines to a runner that does not answer, or that fails nearly all lines. Closed, it
// counts failures in a row. Open, it admits no line until a pause is over, and then one trial line
// at a time. An answer closes it, also that of a line that was in flight when it opened; where it
// was opened on suspicion, only a good answer to a trial. Failures of lines that were in flight do
// not prolong the pause, because they are about the past.
type breaker struct {
	failures int // in a row
	openings int // in a row
	open     bool
	why      opening
	since    time.Time // when it opened
	until    time.Time // when the next trial may start
	trial    uint32    // number of the trial in flight; 0: none
	trials   uint32
}

// opening is why a breaker is open.
type opening uint8

const (
	unanswered opening = iota // lines get no answer
	suspicion                 // nearly all answers are bad
	certainty                 // an answer was bad, and its line can't be the cause
)

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

// succeed closes the breaker, except for a line that was in flight when it opened on suspicion.
func (b *breaker) succeed(trial uint32) {
	if b.open && b.why == suspicion && !b.isTrial(trial) {
		return
	}
	*b = breaker{trials: b.trials}
}

// answer ends a line that was answered, but not well. That closes a breaker that opened because
// lines got no answer.
func (b *breaker) answer(trial uint32) {
	if b.open && b.why != unanswered {
		b.pass(trial)
		return
	}
	b.succeed(trial)
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
	b.why = unanswered
	return b.trip(now, cfg), true
}

// misanswer counts a bad answer whose cause is the runner. It opens the breaker if suspected says
// so, or if that is certain.
func (b *breaker) misanswer(
	now time.Time, cfg BreakerConfig, trial uint32, why opening, suspected bool,
) (until time.Time, opened bool) {
	cfg.Max *= longerProbes
	switch {
	case b.open && !b.isTrial(trial):
		return time.Time{}, false
	case !b.open && why == suspicion && !suspected:
		b.failures = 0 // it answers
		return time.Time{}, false
	case !b.open || why == certainty || b.why == unanswered:
		b.why = why
	}
	return b.trip(now, cfg), true
}

// trip opens the breaker, or prolongs the pause of an open one.
func (b *breaker) trip(now time.Time, cfg BreakerConfig) (until time.Time) {
	if !b.open {
		b.since = now
	}
	b.open, b.trial = true, 0
	b.until = now.Add(doubling(cfg.Base, cfg.Max, b.openings))
	b.openings++
	return b.until
}

// isTrial reports whether the line with this trial number is the trial in flight.
func (b *breaker) isTrial(trial uint32) bool { return trial != 0 && trial == b.trial }
