package engine

import (
	"slices"
	"time"
)

// gapBounds are the bucket edges of vLLM's histogram of the time between tokens.
var gapBounds = [...]time.Duration{
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 75 * time.Millisecond,
	100 * time.Millisecond, 150 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond,
	400 * time.Millisecond, 500 * time.Millisecond, 750 * time.Millisecond, time.Second,
	2500 * time.Millisecond, 5 * time.Second, 7500 * time.Millisecond, 10 * time.Second,
	20 * time.Second, 40 * time.Second, 80 * time.Second,
}

// GapBounds returns the bucket edges of TokenGaps.
func GapBounds() []time.Duration { return slices.Clone(gapBounds[:]) }

// TokenGaps counts the gaps between consecutive tokens of all requests since the start of the
// engine: one in each iteration for each request that gets a token and has had one before. What a
// request waits after a preemption is part of its gap.
type TokenGaps struct {
	Count uint64
	Time  time.Duration // sum
	// Buckets counts the gaps that do not exceed each bound of GapBounds, but the bound before. The
	// last has no bound.
	Buckets [len(gapBounds) + 1]uint64
}

// add counts n gaps of the same length.
func (g *TokenGaps) add(n uint64, gap time.Duration) {
	g.Count += n
	g.Time += time.Duration(n) * gap
	// A linear search is the fastest, since most gaps are in the first buckets.
	bucket := 0
	for bucket < len(gapBounds) && gap > gapBounds[bucket] {
		bucket++
	}
	g.Buckets[bucket] += n
}

// TokenGaps returns the gaps until now. They include those of the iterations of the present run
// that have ended by then.
func (e *Engine) TokenGaps(now time.Time) TokenGaps {
	gaps := e.gaps
	if e.busy && len(e.ends) > 1 {
		e.addGaps(&gaps, e.endedIterations(now))
	}
	return gaps
}

// addGaps adds the gaps of the requests that decode in the first iterations of the present run. All
// of them got their last token at the end of the previous one.
func (e *Engine) addGaps(gaps *TokenGaps, iterations int) {
	if e.decoding == 0 || iterations == 0 {
		return
	}
	gaps.add(e.decoding, e.report.Start.Sub(e.previousEnd)+e.ends[0])
	for i := 1; i < iterations; i++ {
		gaps.add(e.decoding, e.ends[i]-e.ends[i-1])
	}
}
