package fit

import "cmp"

// Step is a recorded scheduler step of an engine.
type Step struct {
	File string
	Line int
	Run  string // steps of one run of the engine have a common clock and counter

	Number int64 // the engine's step counter
	Start  int64 // microseconds

	PrefillTokens, DecodeTokens int64 // scheduled in this step
	PrefillReqs                 int64
	Running                     int64

	// Context is the tokens that the decoding requests attend to, PrefillContext those computed
	// before each prefill chunk; -1: not recorded.
	Context, PrefillContext int64

	KVBlocksUsed, KVBlocksTotal int64 // -1: not recorded

	// GapSteps and Gap are the steps and microseconds to the next sampled step; 0 steps: there is
	// none.
	GapSteps, Gap int64
}

// compareSteps orders steps by run, then by number.
func compareSteps(a, b Step) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Run, b.Run),
		cmp.Compare(a.Number, b.Number))
}
