package flowcontrol

import "math"

// Bucket is one of a Prometheus histogram: Count observations were Upper at most. The last one's
// Upper is infinite.
type Bucket struct{ Upper, Count float64 }

// Attained reads how many of a histogram's observations there are, and how many of them lie above a
// limit, in the unit of the buckets' edges. The buckets are in the order of their edges.
//
// Within a bucket observations are taken to lie evenly, as PromQL's histogram_quantile takes them,
// from 0 on in the first. So the answer is exact where the limit is an edge, and can be far off
// where it isn't: give the histogram one there if you can. What lies in the last, infinite bucket
// may have taken any time and counts as above the limit, and so does a limit beyond the edges.
//
// A histogram that can't be read, because there are no buckets, the last is not infinite or a value
// is no number, is unknown: NaN.
func Attained(buckets []Bucket, limit float64) Attainment {
	unknown := Attainment{math.NaN(), math.NaN()}
	if len(buckets) == 0 || !math.IsInf(buckets[len(buckets)-1].Upper, 1) || !(limit >= 0) {
		return unknown
	}
	// observations up to the limit, up to the bucket, and where it begins
	within, below, edge := 0.0, 0.0, 0.0
	for _, b := range buckets {
		if !(b.Count >= 0) || math.IsInf(b.Count, 1) || !(b.Upper >= edge) {
			return unknown
		}
		// Rates and sums of counters that were not read in the same instant may shrink by a little
		// from edge to edge.
		count := max(below, b.Count)
		switch {
		case b.Upper <= limit && !math.IsInf(b.Upper, 1):
			within = count
		case edge < limit && !math.IsInf(b.Upper, 1):
			within = below + float64((count-below)*((limit-edge)/(b.Upper-edge)))
		}
		below, edge = count, b.Upper
	}
	return Attainment{Requests: below, Late: below - within}
}
