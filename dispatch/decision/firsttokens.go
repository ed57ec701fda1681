package decision

import (
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// firstTokens holds the times to the first token that a source has counted in the last minute, from
// readings of its histogram.
type firstTokens struct {
	marks  []mark // about markEvery apart, the oldest first; readings since are about the same
	latest mark
}

// mark is a histogram as of a time. The reading that it comes from shares it.
type mark struct {
	at    time.Time
	times []flowcontrol.Bucket
}

const (
	// firstTokensFor is the time that first tokens are shown of. In less, a runner that is hardly
	// used has none.
	firstTokensFor = time.Minute
	markEvery      = 10 * time.Second
	// maxBuckets bounds the memory of a source. Engines have about 20.
	maxBuckets = 200
)

// read takes over a histogram. One that is absent or has not changed its time says nothing.
func (f *firstTokens) read(at time.Time, times []flowcontrol.Bucket) {
	if len(times) == 0 || len(times) > maxBuckets || !at.After(f.latest.at) {
		return
	}
	if !follows(f.latest.times, times) {
		f.marks = f.marks[:0]
	}
	f.latest = mark{at, times}
	if n := len(f.marks); n == 0 || at.Sub(f.marks[n-1].at) >= markEvery {
		f.marks = append(f.marks, f.latest)
	}
	gone := 0
	for gone+1 < len(f.marks) && at.Sub(f.marks[gone+1].at) >= firstTokensFor {
		gone++
	}
	f.marks = slices.Delete(f.marks, 0, gone)
}

// follows reports whether a histogram continues one before: it has the same edges, and its source
// has not restarted.
func follows(before, now []flowcontrol.Bucket) bool {
	return alike(before, now) && now[len(now)-1].Count >= before[len(before)-1].Count
}

func alike(a, b []flowcontrol.Bucket) bool {
	return slices.EqualFunc(a, b, func(a, b flowcontrol.Bucket) bool { return a.Upper == b.Upper })
}

// recent returns the histogram of the last minute. known is false if the source has shown none in
// that time.
func (f *firstTokens) recent(now time.Time) (times []flowcontrol.Bucket, known bool) {
	if len(f.marks) == 0 || now.Sub(f.latest.at) > firstTokensFor {
		return nil, false
	}
	times = slices.Clone(f.latest.times)
	most := 0.0 // counters that were not read at the same instant may shrink from edge to edge
	for i, b := range f.marks[0].times {
		most = max(most, times[i].Count-b.Count)
		times[i].Count = most
	}
	return times, true
}

// sum adds up histograms. Those with other edges than the first have their counts estimated at the
// edges of the first.
func sum(all [][]flowcontrol.Bucket) []flowcontrol.Bucket {
	if len(all) == 0 {
		return nil
	}
	total := slices.Clone(all[0])
	for _, one := range all[1:] {
		same := alike(total, one)
		for i := range total {
			switch {
			case same:
				total[i].Count += one[i].Count
			case math.IsInf(total[i].Upper, 1):
				total[i].Count += one[len(one)-1].Count
			default:
				a := flowcontrol.Estimated(one, total[i].Upper)
				total[i].Count += a.Requests - a.Late
			}
		}
	}
	return total
}

// quantile returns the time within which a share of the requests of a histogram got their first
// token, in milliseconds. Within a bucket they are spread evenly; in the last one, which has no
// end, its beginning is returned. Unknown: there are no requests.
func quantile(times []flowcontrol.Bucket, share float64) Number {
	if len(times) == 0 || !(times[len(times)-1].Count > 0) {
		return Unknown
	}
	rank := share * times[len(times)-1].Count
	from, below := 0.0, 0.0
	for _, b := range times {
		if b.Count >= rank && b.Count > below {
			if !math.IsInf(b.Upper, 1) {
				from += (b.Upper - from) * (rank - below) / (b.Count - below)
			}
			return Number(1000 * from)
		}
		from, below = b.Upper, b.Count
	}
	return Unknown
}
