package flowcontrol

import (
	"math"

	"github.com/tidefill/tidefill/internal/portable"
)

// Bucket is one bucket of a Prometheus histogram: Count observations were Upper at most. The Upper
// of the last bucket is infinite.
type Bucket struct{ Upper, Count float64 }

// Attained returns how many observations a histogram has, and how many of them exceed a limit, in
// the unit of the buckets' edges. The buckets are sorted by edge.
//
// Observations are assumed to be spread evenly within a bucket, as PromQL's histogram_quantile
// does, from 0 on in the first. So the result is exact if the limit is an edge, and can be far off
// otherwise: give the histogram an edge there if you can. Observations in the last, infinite bucket
// may have any value and count as above the limit, even if the limit exceeds all other edges.
//
// The result is NaN, unknown, if there are no buckets, the last one is not infinite, or a value is
// not a number.
func Attained(buckets []Bucket, limit float64) Attainment {
	unknown := Attainment{math.NaN(), math.NaN()}
	if len(buckets) == 0 || !math.IsInf(buckets[len(buckets)-1].Upper, 1) || !(limit >= 0) {
		return unknown
	}
	// Observations up to the limit, observations up to the bucket, and the bucket's lower edge.
	within, below, edge := 0.0, 0.0, 0.0
	for _, b := range buckets {
		if !(b.Count >= 0) || math.IsInf(b.Count, 1) || !(b.Upper >= edge) {
			return unknown
		}
		// Counters that were not read at the same instant may shrink a little from edge to edge.
		count := max(below, b.Count)
		switch {
		case b.Upper <= limit && !math.IsInf(b.Upper, 1):
			within = count
		case edge < limit && !math.IsInf(b.Upper, 1):
			within = below + portable.Rounded((count-below)*((limit-edge)/(b.Upper-edge)))
		}
		below, edge = count, b.Upper
	}
	return Attainment{Requests: below, Late: below - within}
}
