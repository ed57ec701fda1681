package flowcontrol

import "time"

// Explainer is a Controller that can tell how it came to its allowance, for people who ask why.
type Explainer interface {
	// Explain lists the terms that the allowance of this moment follows from, the pool's before the
	// runners', always in the same order. It changes nothing: asking leaves every later decision as
	// it would have been.
	Explain(now time.Time) []Term
}

// Term is one figure that a decision follows from.
type Term struct {
	Runner string // empty: of the pool as a whole
	Name   string // as the policy's documentation calls it
	Value  float64
	Unit   string // empty: a share or a number
}
