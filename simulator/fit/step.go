package fit

import "cmp"

// Step is one scheduler step of an engine as it was recorded.
type Step struct {
	File string
	Line int
	Run  string // steps of one run of the engine share a clock and a counter

	Number int64 // the engine's step counter
	Start  int64 // microseconds

	PrefillTokens, DecodeTokens int64 // scheduled in this step
	PrefillReqs                 int64
	Running                     int64

	// Context is the tokens that the decoding requests attend to and PrefillContext
	// those computed before, per prefill chunk; -1 where not recorded.
	Context, PrefillContext int64

	KVBlocksUsed, KVBlocksTotal int64 // -1 where not recorded

	// GapSteps and Gap are the steps and microseconds to the next sampled step; 0
	// steps: there is none.
	GapSteps, Gap int64
}

// compareSteps orders steps by run, then as the engine made them.
func compareSteps(a, b Step) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Run, b.Run),
		cmp.Compare(a.Number, b.Number))
}
