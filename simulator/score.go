package simulator

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
	"github.com/tidefill/tidefill/simulator/scenario"
)

const (
	// freeLoss is how many points of attainment batch work may cost before its harvest counts for
	// less.
	freeLoss = 1
	// lossToZero is how many further points reduce the score to 0.
	lossToZero = 2
	// missedDeadlineScore is the highest overall score of a policy that misses a feasible deadline.
	missedDeadlineScore = 0.8
)

// Score returns a run's harvest as a share of the best possible, reduced for what it costs
// interactive users beyond one point of attainment; at three points it is 0. It is NaN if the best
// is not known.
func Score(harvest, best, loss float64) float64 {
	if !(best > 0) {
		return math.NaN()
	}
	share := harvest / best
	if loss <= freeLoss {
		return share
	}
	return share * max(0, 1-portable.Rounded((loss-freeLoss)/lossToZero))
}

// Overall returns the geometric mean of a policy's scores over scenarios, at most 0.8 if it missed
// a feasible deadline. Unknown scores are left out; the result is NaN if none is known.
func Overall(scores []float64, missedFeasible bool) float64 {
	overall := GeometricMean(scores)
	if missedFeasible && overall > missedDeadlineScore {
		return missedDeadlineScore
	}
	return overall
}

// GeometricMean leaves out unknown values; it is NaN if none is known. It takes the root by
// bisection, because math.Pow does not give the same bits on every processor.
func GeometricMean(values []float64) float64 {
	product, n := 1.0, 0
	for _, v := range values {
		if !math.IsNaN(v) {
			product *= v
			n++
		}
	}
	if n == 0 {
		return math.NaN()
	}
	low, high := 0.0, max(1, product)
	for {
		middle := low + portable.Rounded((high-low)/2)
		if middle <= low || middle >= high {
			return middle
		}
		power := 1.0
		for range n {
			power *= middle
		}
		if power < product {
			low = middle
		} else {
			high = middle
		}
	}
}

// worstLoss returns the largest loss in points over the arrivals of any five consecutive minutes,
// and when they begin.
func worstLoss(quiet, busy []minute) (points float64, at time.Duration) {
	const span = 5
	points = math.Inf(-1)
	n := min(len(quiet), len(busy))
	for i := range max(1, n-span+1) {
		attained := func(minutes []minute) float64 {
			var sum minute
			for _, m := range minutes[i:min(i+span, n)] {
				sum.judged += m.judged
				sum.attained += m.attained
			}
			return share(sum.attained, sum.judged)
		}
		// beyond what rounding makes of the same loss
		if lost := 100 * (attained(quiet) - attained(busy)); lost > points+1e-9 {
			points, at = lost, scenario.Edge+time.Duration(i)*time.Minute
		}
	}
	return points, at
}
