package headroom

import (
	"slices"

	"github.com/tidefill/tidefill/flowcontrol"
)

// engineLengths is the histogram of the answers of interactive requests, from the engines'
// histograms of all answers less those of batch lines. It is of use where no gateway shows them.
type engineLengths struct {
	buckets []flowcontrol.Bucket // cumulative, of the answers seen so far; all runners together
	own     []float64            // batch lines among them, by bucket
}

// read adds what an engine has counted between two readings.
func (e *engineLengths) read(before, now []flowcontrol.Bucket) {
	last := len(now) - 1
	if last < 1 || len(before) != len(now) || now[last].Count < before[last].Count {
		return
	}
	if len(e.buckets) != len(now) {
		e.buckets, e.own = slices.Clone(now), make([]float64, len(now))
		for i := range e.buckets {
			e.buckets[i].Count = 0
		}
	}
	for i := range e.buckets {
		e.buckets[i].Count += max(0, now[i].Count-before[i].Count)
	}
}

// answered counts the answer of a batch line.
func (e *engineLengths) answered(tokens int) {
	for i := range e.buckets {
		if float64(tokens) <= e.buckets[i].Upper {
			e.own[i]++
			return
		}
	}
}

// interactive returns the histogram without batch lines.
func (e *engineLengths) interactive() []flowcontrol.Bucket {
	rest, own, before := slices.Clone(e.buckets), 0.0, 0.0
	for i := range rest {
		own += e.own[i]
		before = max(before, rest[i].Count-own)
		rest[i].Count = before
	}
	return rest
}
