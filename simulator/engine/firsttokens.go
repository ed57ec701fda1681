package engine

import "slices"

// firstTokenBounds are the bucket edges of vLLM's histogram of the time to the first token, in
// seconds.
var firstTokenBounds = [...]float64{
	0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40,
	80, 160, 640, 2560,
}

// FirstTokenBounds returns the bucket edges of FirstTokens, in seconds.
func FirstTokenBounds() []float64 { return slices.Clone(firstTokenBounds[:]) }

// FirstTokens counts first tokens since the start of the engine, by the time from the arrival of
// their request at the server. Each element counts those that do not exceed its bound of
// FirstTokenBounds, but the bound before. The last has no bound.
type FirstTokens [len(firstTokenBounds) + 1]uint64

func (f *FirstTokens) add(seconds float64) {
	bucket, _ := slices.BinarySearch(firstTokenBounds[:], seconds)
	f[bucket]++
}

// FirstTokens returns the first tokens so far.
func (e *Engine) FirstTokens() FirstTokens { return e.firstTokens }
