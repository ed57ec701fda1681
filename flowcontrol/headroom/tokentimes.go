package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/portable"
)

// tokenTimes is the distribution of the mean time between tokens of interactive requests, over the
// last half hour, with what batch work added to it.
type tokenTimes struct {
	edges  []float64 // milliseconds; the last is infinite
	counts []float64 // by bucket
	total  float64
	added  spread // by batch work, in milliseconds
	last   []flowcontrol.Bucket
	at     time.Time
	// room is the time that batch work may add to iterations, in milliseconds; see allowed.
	room float64
}

// read takes over a gateway's histogram. added is what batch work adds to an iteration now.
func (t *tokenTimes) read(now time.Time, buckets []flowcontrol.Bucket, added float64) {
	before := t.last
	t.last = buckets
	if len(before) != len(buckets) || len(buckets) == 0 {
		return
	}
	if len(t.edges) != len(buckets) {
		t.edges, t.counts = make([]float64, len(buckets)), make([]float64, len(buckets))
		t.total = 0
	}
	keep := kept(t.at, now, shareMemory)
	for i := range t.counts {
		t.counts[i] *= keep
	}
	t.total *= keep
	t.at = now
	below, n := 0.0, 0.0
	for i, b := range buckets {
		t.edges[i] = 1000 * b.Upper
		count := max(0, b.Count-before[i].Count-below)
		below += count
		t.counts[i] += count
		n += count
	}
	t.total += n
	if n > 0 {
		t.added.add(now, shareMemory, added)
	}
}

// above returns the share of requests that took longer than a time. Between the edges of the
// buckets, shares are assumed to fall exponentially, as tails of latencies do.
func (t *tokenTimes) above(ms float64) float64 {
	const unseen = 0.5 // requests, where none was seen
	share := func(count float64) float64 { return (count + unseen) / (t.total + unseen) }
	left, from := t.total, 0.0
	for i, edge := range t.edges {
		next := left - t.counts[i]
		if ms < edge {
			if math.IsInf(edge, 1) {
				edge = 2 * max(from, 1)
			}
			part := min(1, max(0, (ms-from)/(edge-from)))
			return share(left) * portable.Exp(part*portable.Log(share(max(0, next))/share(left)))
		}
		left, from = max(0, next), edge
	}
	return share(0)
}

// allowed returns the time that batch work may add to iterations, in milliseconds. With that, no
// more than a share of the requests is late because of it. It is infinite while too few requests
// were seen.
func (t *tokenTimes) allowed(objective, late float64) float64 {
	if t.total < fewTokenTimes {
		return math.Inf(1)
	}
	added := t.added.mean
	innocent := t.above(objective + added)
	low, high := 0.0, objective
	for range 20 {
		mid := (low + high) / 2
		if t.above(objective-mid+added)-innocent <= late {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// usual returns the mean time between tokens, in milliseconds; 0: too few requests were seen.
func (t *tokenTimes) usual() float64 {
	if t.total < fewTokenTimes {
		return 0
	}
	sum, from := 0.0, 0.0
	for i, edge := range t.edges {
		if math.IsInf(edge, 1) {
			edge = from
		}
		sum += t.counts[i] * (from + edge) / 2
		from = edge
	}
	return sum / t.total
}

// fewTokenTimes is the number of requests below which a distribution shows little.
const fewTokenTimes = 50

// lateBy returns which share of requests is expected to be late because batch work adds some
// milliseconds to iterations.
func (t *tokenTimes) lateBy(objective, added float64) float64 {
	if t.total < fewTokenTimes {
		return 0
	}
	return max(0, t.above(objective-added+t.added.mean)-t.above(objective+t.added.mean))
}
