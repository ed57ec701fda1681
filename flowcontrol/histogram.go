package flowcontrol

import "math"

// Bucket is one bucket of a Prometheus histogram: Count observations were Upper at most. The Upper
// of the last bucket is infinite.
type Bucket struct{ Upper, Count float64 }

// Attained returns how many observations a histogram has, and how many of them may exceed a limit,
// in the unit of the buckets' edges: all above the last edge that is at most the limit. The buckets
// are sorted by edge.
//
// So the result is exact if the limit is an edge, and on the safe side otherwise: nobody knows
// where observations lie within a bucket, and to assume it would let late ones count as in time.
// Give the histogram an edge at the limit if you can.
//
// The result is NaN, unknown, if there are no buckets, the last one is not infinite, or a value is
// not a number.
func Attained(buckets []Bucket, limit float64) Attainment {
	unknown := Attainment{math.NaN(), math.NaN()}
	if len(buckets) == 0 || !math.IsInf(buckets[len(buckets)-1].Upper, 1) || !(limit >= 0) {
		return unknown
	}
	// Observations up to the last edge within the limit, up to the bucket, and its lower edge.
	within, below, edge := 0.0, 0.0, 0.0
	for _, b := range buckets {
		if !(b.Count >= 0) || math.IsInf(b.Count, 1) || !(b.Upper >= edge) {
			return unknown
		}
		// Counters that were not read at the same instant may shrink a little from edge to edge.
		count := max(below, b.Count)
		if b.Upper <= limit && !math.IsInf(b.Upper, 1) {
			within = count
		}
		below, edge = count, b.Upper
	}
	return Attainment{Requests: below, Late: below - within}
}
