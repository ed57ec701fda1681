package flowcontrol

import "time"

// Explainer is a Controller that can explain its allowance.
type Explainer interface {
	// Explain returns the figures that the allowance of this moment follows from, the pool's before
	// the runners', always in the same order. It changes no later decision.
	Explain(now time.Time) []Term
}

// Term is one figure that a decision follows from.
type Term struct {
	Runner string // empty: of the pool
	Name   string // as in the policy's documentation
	Value  float64
	Unit   string // empty: a share or a number
}

// Names of terms of the pool that programs look for, such as the console and metrics. A policy that
// controls the iteration time or the waiting prompt tokens explains them under these names.
const (
	// TermTargetShare is the share of the TPOT objective that iterations may take.
	TermTargetShare = "target share"
	// TermPromptTokens is the greatest number of prompt tokens of batch lines that wait on a
	// runner.
	TermPromptTokens = "prompt token limit"
	// TermObjective is the limit of the time between tokens of interactive requests, in
	// milliseconds. 0: unknown.
	TermObjective = "objective of tokens"
	// TermConfigured is the configured objective in milliseconds, where TermObjective is lower
	// because no engine needs as much. 0: it is as configured.
	TermConfigured = "configured objective of tokens"
	// TermAlone is that time without batch work, in milliseconds. 0: unknown.
	TermAlone = "alone"
	// TermTarget is the target of that time with batch work, in milliseconds. 0: unknown.
	TermTarget = "target iteration"
	// TermWatched is the time for which the pool has been watched before lines start, in seconds,
	// and TermWatching the longest time for which it will be, as far as is known. 0: it is not
	// watched.
	TermWatched  = "watched"
	TermWatching = "watched at most"
	// TermUnseen is 1 where nothing shows what users feel, so that lines are limited by the times
	// of their own answers. 0: something does, or it is not known yet.
	TermUnseen = "users unseen"
	// TermRequests is the number of interactive requests that a gateway has shown, with weights
	// that fade, and TermLate the share of them that was late.
	TermRequests = "real requests"
	TermLate     = "real late"
	// TermLateBudget is the part of the lines that may run, by the number of interactive requests
	// that batch work has made late. 1: all.
	TermLateBudget = "late budget left"
	// TermFirstObjective is the limit of the time of first tokens of interactive requests, in
	// milliseconds. 0: unknown, or only TermSlowdownAllowed limits it.
	TermFirstObjective = "objective of first tokens"
	// TermSlowdown is the time of first tokens as a multiple of that without batch work.
	// TermSlowdownAllowed is the largest multiple allowed.
	TermSlowdown        = "slowdown"
	TermSlowdownAllowed = "slowdown allowed"
)

// Names of terms of a runner that programs look for.
const (
	// TermTokenTime is the mean time of the runner's iterations, in milliseconds: every user of it
	// gets a token in each. 0: unknown. TermTokenTimeAge is the age of that, in seconds.
	TermTokenTime    = "iteration"
	TermTokenTimeAge = "token gaps age"
	// TermInteractiveRunning and TermInteractiveWaiting are the runner's requests that are no batch
	// lines, as of TermLoadAge seconds ago.
	TermInteractiveRunning = "interactive running"
	TermInteractiveWaiting = "interactive waiting"
	TermLoadAge            = "metrics age"
)
