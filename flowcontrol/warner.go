package flowcontrol

import (
	"fmt"
	"time"
)

// Warner is a Controller that can report what an operator should look at.
type Warner interface {
	// Warnings returns what is probably wrong with the configuration or the pool as of this moment,
	// always in the same order; nil: nothing. It changes no later decision.
	Warnings(now time.Time) []Warning
}

// Warning is one finding of a Warner.
type Warning struct {
	// Code names the finding, one of a small fixed set. A warning is logged when its code is new,
	// so a policy keeps the code until the cause is gone for a while.
	Code string
	// Text says what is wrong, with the present figures, and what to do.
	Text string
}

// WarnObjective is the code of a TPOT objective that does not fit the engines.
const WarnObjective = "implausible_objective"

// plausibleRatio is how many times as long as iterations without batch lines a TPOT objective may
// be. Operators promise two to four times what an idle engine needs.
const plausibleRatio = 5

// Implausible reports whether the TPOT objective does not fit engines whose iterations take so long
// without batch lines: they exceed it, or are below a fifth of it. No objective is plausible.
func (s SLO) Implausible(alone time.Duration) (Warning, bool) {
	const remedy = "configure what users are promised, or set slo.ttft and slo.tpot to 0 for an " +
		"objective relative to the engines"
	took := alone.Round(100 * time.Microsecond)
	switch {
	case s.TPOT <= 0 || alone <= 0:
		return Warning{}, false
	case alone > s.TPOT:
		return Warning{WarnObjective, fmt.Sprintf("slo.tpot is %v, but iterations take %v without "+
			"batch lines, so none may run; %s", s.TPOT, took, remedy)}, true
	case alone*plausibleRatio < s.TPOT:
		return Warning{WarnObjective, fmt.Sprintf("slo.tpot is %v, but iterations take only %v "+
			"without batch lines, so users may get tokens more than %d times as slowly; %s",
			s.TPOT, took, plausibleRatio, remedy)}, true
	}
	return Warning{}, false
}
