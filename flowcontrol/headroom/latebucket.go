package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/portable"
)

// recentTimes is a histogram of the first tokens of the last half hour. It says which part of the
// bucket of the objective is late: the edges of engines' histograms are where their makers put
// them, and few first tokens come as late as the end of a bucket if hardly any come later.
type recentTimes struct {
	times firstTokenTimes
	at    time.Time
}

// add adds what a source counted between two readings.
func (r *recentTimes) add(now time.Time, before, after []flowcontrol.Bucket) {
	keep := kept(r.at, now, shareMemory)
	for i := range r.times {
		r.times[i].Count *= keep
	}
	r.at = now
	r.times.add(before, after)
}

// lateInBucket returns which part of the bucket that a limit lies in exceeds it. Shares are assumed
// to fall exponentially between the edges, as tails of latencies do.
func (r *recentTimes) lateInBucket(limit float64) float64 {
	const unseen = 0.5 // requests, where none was seen
	total, from, below := r.times.count(), 0.0, 0.0
	for _, b := range r.times {
		if limit < b.Upper {
			if math.IsInf(b.Upper, 1) {
				return 1
			}
			left := (total - below + unseen) / (total + unseen)
			right := (max(0, total-b.Count) + unseen) / (total + unseen)
			if left-right < 1e-9 {
				return (b.Upper - limit) / (b.Upper - from)
			}
			part := (limit - from) / (b.Upper - from)
			above := left * portable.Exp(part*portable.Log(right/left))
			return min(1, max(0, (above-right)/(left-right)))
		}
		from, below = b.Upper, b.Count
	}
	return 1
}

// attained counts first tokens by a histogram, and those above a limit: all in the buckets above
// it, and a part of those in its own.
func attained(times []flowcontrol.Bucket, limit, part float64) flowcontrol.Attainment {
	low, high := flowcontrol.Attained(times, limit), 0.0
	for _, b := range times {
		if limit < b.Upper { // all in its bucket are in time
			high = b.Count
			break
		}
	}
	certain := low.Requests - high
	low.Late = certain + part*max(0, low.Late-certain)
	return low
}

// hidden returns the number of first tokens, counted by a histogram between two readings, that may
// be late or not. The limit lies inside of their bucket.
func hidden(before, after []flowcontrol.Bucket, limit float64) float64 {
	if len(before) != len(after) {
		return 0
	}
	from, below := 0.0, 0.0
	for i, b := range after {
		n := b.Count - before[i].Count
		if limit < b.Upper {
			if from < limit {
				return max(0, n-below)
			}
			return 0
		}
		from, below = b.Upper, n
	}
	return 0
}
