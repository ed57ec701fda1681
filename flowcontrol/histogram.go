package flowcontrol

import (
	"math"
)

// Bucket is one bucket of a Prometheus histogram: Count observations were Upper at most. The Upper
// of the last bucket is infinite.
type Bucket struct{ Upper, Count float64 }

// Attained returns the number of observations of a histogram, and of those that may exceed a limit,
// in the unit of the buckets' edges. The latter are all above the last edge that is at most the
// limit. The buckets are sorted by edge.
//
// So the result is exact if the limit is an edge, and on the safe side otherwise. Nobody knows
// where observations lie within a bucket, and to assume it would let late ones count as in time.
// Give the histogram an edge at the limit if you can.
//
// The result is NaN, unknown, if there are no buckets, the last one is not infinite, or a value is
// not a number.
func Attained(buckets []Bucket, limit float64) Attainment {
	return count(buckets, limit, func(Bucket, float64, float64) float64 { return 0 })
}

// Estimated is like Attained, but spreads observations evenly within the bucket of the limit, from
// 0 on in the first, as PromQL's histogram_quantile does. It is for limits that nobody could choose
// an edge for: those of engines' own histograms, and objectives that were measured.
func Estimated(buckets []Bucket, limit float64) Attainment {
	return count(buckets, limit, func(b Bucket, edge, n float64) float64 {
		if math.IsInf(b.Upper, 1) {
			return 0
		}
		return n * ((limit - edge) / (b.Upper - edge))
	})
}

// count returns the observations of a histogram and those above a limit. within returns the number
// of the n in the limit's bucket, which begins at an edge, that do not exceed the limit.
func count(
	buckets []Bucket, limit float64, within func(b Bucket, edge, n float64) float64,
) Attainment {
	unknown := Attainment{math.NaN(), math.NaN()}
	if len(buckets) == 0 || !math.IsInf(buckets[len(buckets)-1].Upper, 1) || !(limit >= 0) {
		return unknown
	}
	// Observations up to the limit, observations up to the bucket, and the bucket's lower edge.
	attained, below, edge := 0.0, 0.0, 0.0
	for _, b := range buckets {
		if !(b.Count >= 0) || math.IsInf(b.Count, 1) || !(b.Upper >= edge) {
			return unknown
		}
		// Counters that were not read at the same instant may shrink a little from edge to edge.
		count := max(below, b.Count)
		switch {
		case b.Upper <= limit && !math.IsInf(b.Upper, 1):
			attained = count
		case edge < limit:
			attained = below + within(b, edge, count-below)
		}
		below, edge = count, b.Upper
	}
	return Attainment{Requests: below, Late: below - attained}
}
