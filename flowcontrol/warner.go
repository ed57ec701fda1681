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

// WarnTTFT is the code of a TTFT objective that does not fit the pool.
const WarnTTFT = "implausible_ttft"

// plausibleRatio is the largest plausible TPOT objective, as a multiple of iterations without batch
// lines. Operators promise two to four times what an idle engine needs.
const plausibleRatio = 5

// plausibleTTFT is the largest plausible TTFT objective, as a multiple of the time of nearly all
// first tokens without batch lines. It is more than for tokens: prompts differ, and users of the
// busiest hour may wait several times as long as those that were measured.
const plausibleTTFT = 10

// sayPromise is what to do about an objective that does not fit.
const sayPromise = "configure what users are promised, or set slo.ttft and slo.tpot to 0 for an " +
	"objective relative to the engines"

// Implausible reports whether the TPOT objective does not fit engines whose iterations take so long
// without batch lines: they exceed it, or are below a fifth of it. kept is the time that the policy
// keeps instead. No objective is plausible.
func (s SLO) Implausible(alone, kept time.Duration) (Warning, bool) {
	took, kept := alone.Round(100*time.Microsecond), kept.Round(100*time.Microsecond)
	switch {
	case s.TPOT <= 0 || alone <= 0:
		return Warning{}, false
	case alone > s.TPOT:
		return Warning{WarnObjective, fmt.Sprintf("slo.tpot is %v, but iterations take %v without "+
			"batch lines, so none may run; %s", s.TPOT, took, sayPromise)}, true
	case alone*plausibleRatio < s.TPOT:
		return Warning{WarnObjective, fmt.Sprintf("slo.tpot is %v, but iterations take only %v "+
			"without batch lines, less than a fifth of it, so lines are limited by %v instead; %s",
			s.TPOT, took, kept, sayPromise)}, true
	}
	return Warning{}, false
}

// ImplausibleTTFT reports whether the TTFT objective does not fit a pool in which all but a few
// first tokens take at least and at most so long without batch lines; 0: not known. The pool misses
// it by itself, or would keep to a tenth of it. No objective is plausible.
func (s SLO) ImplausibleTTFT(least, most time.Duration) (Warning, bool) {
	switch {
	case s.TTFT <= 0:
		return Warning{}, false
	case least > s.TTFT:
		return Warning{WarnTTFT, fmt.Sprintf("slo.ttft is %v, but without batch lines more than "+
			"1.5 %% of first tokens take %v or longer, so the pool misses it by itself and lines "+
			"are limited by a looser one; %s", s.TTFT, least.Round(time.Millisecond),
			sayPromise)}, true
	case most > 0 && most*plausibleTTFT < s.TTFT:
		return Warning{WarnTTFT, fmt.Sprintf("slo.ttft is %v, but 98.5 %% of first tokens come "+
			"within %v without batch lines, so users may wait more than %d times as long; %s",
			s.TTFT, most.Round(100*time.Microsecond), plausibleTTFT, sayPromise)}, true
	}
	return Warning{}, false
}
