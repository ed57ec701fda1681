package headroom

import (
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// firstTokenTimes is a histogram of first tokens, cumulative.
type firstTokenTimes []flowcontrol.Bucket

// add adds what a source counted between two readings. A histogram with other edges starts again.
func (f *firstTokenTimes) add(before, now []flowcontrol.Bucket) {
	last := len(now) - 1
	if last < 0 || !sameEdges(before, now) || now[last].Count < before[last].Count {
		return
	}
	if !sameEdges(*f, now) {
		*f = slices.Clone(now)
		for i := range *f {
			(*f)[i].Count = 0
		}
	}
	// A sum over replicas shrinks in some buckets when one with slow requests goes, and must not
	// then have fewer requests within a longer time.
	grown := 0.0
	for i := range *f {
		grown = max(grown, now[i].Count-before[i].Count)
		(*f)[i].Count += grown
	}
}

func sameEdges(a, b []flowcontrol.Bucket) bool {
	return slices.EqualFunc(a, b, func(a, b flowcontrol.Bucket) bool { return a.Upper == b.Upper })
}

// usual returns the time within which nearly all first tokens come, in seconds, or a shorter one.
// Of few requests, a single slow one says little about all. A first token that is faster than limit
// may be anywhere in its bucket.
func (f firstTokenTimes) usual(limit float64) float64 {
	deviation := math.Sqrt(nearlyAll * (1 - nearlyAll) / max(f.count(), 1))
	return f.quantile(nearlyAll-2*deviation, limit)
}

const nearlyAll = 0.985

func (f firstTokenTimes) count() float64 {
	if len(f) == 0 {
		return 0
	}
	return f[len(f)-1].Count
}

// quantile returns a quantile in seconds, interpolated unless its bucket begins below the limit; 0
// of few requests.
func (f firstTokenTimes) quantile(q, limit float64) float64 {
	if f.count() < 30 {
		return 0
	}
	rank, from, below := q*f.count(), 0.0, 0.0
	for _, b := range f {
		if b.Count >= rank {
			if from < limit {
				return from
			}
			if math.IsInf(b.Upper, 1) {
				return 2 * from
			}
			part := (rank - below) / max(b.Count-below, 1e-9)
			return from + (b.Upper-from)*part
		}
		from, below = b.Upper, b.Count
	}
	return from
}

// within returns the edge of a bucket, in seconds, within which a share of the first tokens came;
// 0: they are too few to say, or more came after the last edge.
func (f firstTokenTimes) within(q float64) float64 {
	if f.count() < bestRequests {
		return 0
	}
	rank := q * f.count()
	for _, b := range f {
		if b.Count >= rank && !math.IsInf(b.Upper, 1) {
			return b.Upper
		}
	}
	return 0
}

// bestTimes are the first tokens of the best of the last half hour, with batch work or without it.
// Without batch work the pool does at least as well, so a quiet time that was worse shows little:
// the prefix cache had to fill, or users asked for more.
type bestTimes struct {
	times firstTokenTimes // of requests that are being collected; empty: the source only counts
	// all are those requests, and late those of them that were.
	all, late float64
	usual     float64   // seconds; 0: unknown
	share     float64   // that is late at most; 1: unknown
	at        time.Time // when usual and share were last lowered
}

// bestRequests is the number of requests that are judged together.
const bestRequests = 300

// read takes over what came between two readings: the histograms, the number of requests and that
// of the late ones.
func (b *bestTimes) read(
	now time.Time, before, after []flowcontrol.Bucket, requests, late, limit float64,
) {
	b.times.add(before, after)
	b.all += requests
	b.late += late
	if b.all < bestRequests {
		return
	}
	usual := b.times.quantile(nearlyAll, limit)
	share := (b.late + 2*math.Sqrt(b.late+1)) / b.all
	if b.at.IsZero() || now.Sub(b.at) > shareMemory {
		b.usual, b.share, b.at = usual, share, now
	}
	if usual < b.usual || share < b.share {
		b.usual, b.share, b.at = min(usual, b.usual), min(share, b.share), now
	}
	b.times, b.all, b.late = nil, 0, 0
}
