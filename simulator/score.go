package simulator

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// MaxLoss is the attainment that batch work may cost, in points. A run that costs more is unsafe.
const MaxLoss = 1

// Loss returns the points of attainment that batch work costs. A loss that only rounding
// distinguishes from MaxLoss is MaxLoss: 1 - 0.99 is a little more than 0.01.
func Loss(withoutBatch, withBatch float64) float64 {
	const rounding = 1e-9
	points := 100 * (withoutBatch - withBatch)
	if math.Abs(points-MaxLoss) < rounding {
		return MaxLoss
	}
	return points
}

// missedDeadlineScore is the highest overall score of a policy that misses a feasible deadline.
const missedDeadlineScore = 0.8

// Score returns a safe run's harvest as a share of the best possible; it is NaN if the best is not
// known. An unsafe run scores below 0, whatever it harvests: minus the points of its loss beyond
// MaxLoss. So no unsafe run scores above a safe one.
func Score(harvest, best, loss float64) float64 {
	switch {
	case loss > MaxLoss:
		return MaxLoss - loss
	case !(best > 0):
		return math.NaN()
	}
	return harvest / best
}

// MeanScore returns the mean over the seeds of a scenario. If one of the runs is unsafe, safe ones
// count as 0, so that a harvest does not offset what another seed costs.
func MeanScore(scores []float64) float64 {
	if mean, unsafe := unsafeMean(scores); unsafe {
		return mean
	}
	sum := 0.0
	for _, s := range scores {
		sum += s
	}
	return sum / float64(len(scores))
}

// Overall returns the geometric mean of a policy's scores over scenarios, at most 0.8 if it missed
// a feasible deadline. If a scenario's score is negative, it is the mean of the scores instead, and
// safe scenarios count as 0. Unknown scores are left out; the result is NaN if none is known.
func Overall(scores []float64, missedFeasible bool) float64 {
	if mean, unsafe := unsafeMean(scores); unsafe {
		return mean
	}
	overall := GeometricMean(scores)
	if missedFeasible && overall > missedDeadlineScore {
		return missedDeadlineScore
	}
	return overall
}

// unsafeMean returns the mean of the scores with those above 0 as 0, and whether one is negative.
// It leaves out unknown scores.
func unsafeMean(scores []float64) (mean float64, unsafe bool) {
	sum, n := 0.0, 0
	for _, s := range scores {
		if !math.IsNaN(s) {
			sum += min(s, 0)
			n++
		}
	}
	return sum / float64(max(1, n)), sum < 0
}

// GeometricMean leaves out unknown values; it is NaN if none is known. It takes the root by
// bisection, because math.Pow does not give the same bits on every processor. A product that is
// beyond what a float64 holds, as of the scores of hundreds of pools, has none; then it takes the
// mean of the logarithms, which are within some units in the last place.
func GeometricMean(values []float64) float64 {
	product, logs, n := 1.0, 0.0, 0
	for _, v := range values {
		switch {
		case v == 0:
			return 0
		case !math.IsNaN(v):
			product *= v
			logs += portable.Log(v)
			n++
		}
	}
	const minNormal = 0x1p-1022
	switch {
	case n == 0:
		return math.NaN()
	case product < minNormal || product > math.MaxFloat64:
		return portable.Exp(logs / float64(n))
	}
	low, high := 0.0, max(1, product)
	for {
		middle := low + (high-low)/2
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
