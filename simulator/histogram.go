package simulator

import (
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/simulator/engine"
)

// gapBounds are the edges of the engines' histogram of token gaps, in seconds.
var gapBounds = seconds(engine.GapBounds())

// firstTokenBounds are the edges of the engines' histogram of first tokens, in seconds.
var firstTokenBounds = engine.FirstTokenBounds()

func seconds(times []time.Duration) []float64 {
	all := make([]float64, len(times))
	for i, t := range times {
		all[i] = t.Seconds()
	}
	return all
}

// buckets returns the buckets of a Prometheus histogram from the counts between its edges. The last
// count is of what exceeds them all.
func buckets(bounds []float64, counts []uint64) []flowcontrol.Bucket {
	all, sum := make([]flowcontrol.Bucket, len(counts)), 0.0
	for i, n := range counts {
		upper := math.Inf(1)
		if i < len(bounds) {
			upper = bounds[i]
		}
		sum += float64(n)
		all[i] = flowcontrol.Bucket{Upper: upper, Count: sum}
	}
	return all
}

// subtract removes what a histogram had counted before from its buckets.
func subtract(all, before []flowcontrol.Bucket) {
	for i, b := range before {
		all[i].Count -= b.Count
	}
}

// lengthMeter counts numbers of tokens in a histogram.
type lengthMeter struct {
	bounds []float64
	counts []uint64
}

// newLengthMeter has the edges 1, 8 and the further powers of two up to a maximum, about those of
// the endpoint picker of the Kubernetes Gateway API inference extension.
func newLengthMeter(most float64) lengthMeter {
	m := lengthMeter{bounds: []float64{1}}
	for edge := 8.0; edge <= most; edge *= 2 {
		m.bounds = append(m.bounds, edge)
	}
	m.counts = make([]uint64, len(m.bounds)+1)
	return m
}

func (m *lengthMeter) add(tokens int) {
	bucket, _ := slices.BinarySearch(m.bounds, float64(tokens))
	m.counts[bucket]++
}
