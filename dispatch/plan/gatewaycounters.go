package plan

import (
	"math"
	"slices"

	"github.com/tidefill/tidefill/flowcontrol"
)

// gatewayHistograms returns the histograms that a gateway may show.
func gatewayHistograms(r *flowcontrol.Reading) [4]*[]flowcontrol.Bucket {
	return [...]*[]flowcontrol.Bucket{&r.FirstTokenTimes, &r.TokenTimes, &r.PromptLengths,
		&r.AnswerLengths}
}

// gatewayCounters returns the counters that a gateway may show.
func gatewayCounters(r *flowcontrol.Reading) [5]*float64 {
	return [...]*float64{&r.Requests, &r.TTFT.Requests, &r.TTFT.Late, &r.TPOT.Requests,
		&r.TPOT.Late}
}

// keepCounters replaces the counters that a later reading shows.
func keepCounters(kept, r *flowcontrol.Reading) { showCounters(kept, r, r) }

// showCounters sets those counters of a reading that another shows, to what they are in a sum.
func showCounters(into, sum, shown *flowcontrol.Reading) {
	from, has := gatewayHistograms(sum), gatewayHistograms(shown)
	for i, h := range gatewayHistograms(into) {
		if len(*has[i]) > 0 {
			*h = slices.Clone(*from[i])
		}
	}
	values, known := gatewayCounters(sum), gatewayCounters(shown)
	for i, v := range gatewayCounters(into) {
		if !math.IsNaN(*known[i]) {
			*v = *values[i]
		}
	}
}

// addGrowth adds the growth of counters to a sum. What the sum does not have yet begins with the
// counts of this reading; counters that have begun again, or are new here, add nothing.
func addGrowth(sum, last, r *flowcontrol.Reading) {
	before, now := gatewayHistograms(last), gatewayHistograms(r)
	for i, h := range gatewayHistograms(sum) {
		if len(*h) == 0 {
			*h = slices.Clone(*now[i])
		} else if goesOn(*before[i], *now[i]) {
			addHistogram(*h, *before[i], *now[i])
		}
	}
	had, has := gatewayCounters(last), gatewayCounters(r)
	for i, v := range gatewayCounters(sum) {
		if math.IsNaN(*v) {
			*v = *has[i]
		} else if *has[i] >= *had[i] {
			*v += *has[i] - *had[i]
		}
	}
}

// goesOn reports whether a histogram continues one before: it has the same edges, and no count is
// less.
func goesOn(before, now []flowcontrol.Bucket) bool {
	return slices.EqualFunc(before, now, func(b, n flowcontrol.Bucket) bool {
		return b.Upper == n.Upper && n.Count >= b.Count
	})
}

// addHistogram adds to a sum what a histogram has grown by. The sum keeps its edges: where those of
// the other differ, observations count from the first edge on that they are known not to exceed.
func addHistogram(sum, before, now []flowcontrol.Bucket) {
	n, grown := 0, 0.0
	for i := range sum {
		for n < len(now) && now[n].Upper <= sum[i].Upper {
			grown = now[n].Count - before[n].Count
			n++
		}
		sum[i].Count += grown
	}
}
