package headroom

import (
	"math"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/portable"
)

// gapVariance returns the variance of the token gaps that an engine counted between two readings,
// in square milliseconds; 0: its histogram does not show it.
func gapVariance(before, after []flowcontrol.Bucket) float64 {
	if len(before) != len(after) {
		return 0
	}
	n, sum, squares := 0.0, 0.0, 0.0
	from, below := 0.0, 0.0
	for i, b := range after {
		count := b.Count - before[i].Count - below
		below += count
		to := 1000 * b.Upper
		if math.IsInf(to, 1) {
			to = 2 * from
		}
		if middle := (from + to) / 2; count > 0 {
			n += count
			sum += count * middle
			squares += count * (middle * middle)
		}
		from = to
	}
	if n < 2 {
		return 0
	}
	mean := sum / n
	return max(0, squares/n-mean*mean)
}

// together is the factor by which the variance of the means of answers is larger than with
// independent gaps. Prompts are computed in several iterations, and come in bursts.
const together = 3

// lateOfMany returns which share of many answers of a length took longer than the objective, whose
// gaps have a mean and a variance.
func lateOfMany(length, mean, variance, objective float64) float64 {
	deviation := math.Sqrt(together * variance / max(length, 1))
	if deviation <= 0 {
		if mean > objective {
			return 1
		}
		return 0
	}
	return normalTail((objective - mean) / deviation)
}

// normalTail returns the probability that a normal variable is more than z deviations above its
// mean, to within a hundredth of itself. It is the same on every processor.
func normalTail(z float64) float64 {
	if z < 0 {
		return 1 - normalTail(-z)
	}
	// Zelen and Severo, Abramowitz and Stegun 26.2.17.
	t := 1 / (1 + 0.2316419*z)
	series := 0.0
	for _, c := range []float64{1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.319381530} {
		series = t * (c + series)
	}
	return min(1, 0.3989422804014327*portable.Exp(-(z*z)/2)*series)
}
