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

// read adds what an engine has counted between two readings, and the batch lines among it.
func (e *engineLengths) read(before, now []flowcontrol.Bucket, own *ownAnswers) {
	ours := own.take(now)
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
		if len(ours) > 0 {
			e.own[i] += ours[i]
		}
	}
}

// ownAnswers counts the batch lines that a runner has answered since its last metrics, by the
// buckets of these. Those of runners without metrics, and of the time before the first ones, are in
// no engine's count that is used, so they must not be taken from one.
type ownAnswers struct {
	buckets []flowcontrol.Bucket
	counts  []float64
}

func (o *ownAnswers) answered(tokens int) {
	for i, b := range o.buckets {
		if float64(tokens) <= b.Upper {
			o.counts[i]++
			return
		}
	}
}

// take returns what was counted, and counts from now on by other buckets.
func (o *ownAnswers) take(buckets []flowcontrol.Bucket) (counts []float64) {
	counts = o.counts
	if len(counts) != len(buckets) {
		counts = nil
	}
	o.buckets, o.counts = buckets, make([]float64, len(buckets))
	return counts
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
