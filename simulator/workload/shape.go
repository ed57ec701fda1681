package workload

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// Rate shapes that need no file, after the published rates of a large model
// service over a week (ServeGen, Apache-2.0; Xiang et al., NSDI 2026), one point
// every 10 minutes from midnight.

const shapeStep = 10 * time.Minute

// hourFactors are the mean rates of the hours of the day of a small model of the service, relative
// to the mean of the week.
var hourFactors = [24]float64{
	0.84, 0.67, 0.66, 0.66, 0.62, 0.64, 0.72, 0.81, 0.98, 1.18, 1.15, 1.10,
	1.04, 1.01, 1.05, 1.04, 1.07, 1.08, 1.07, 1.22, 1.47, 1.47, 1.34, 1.11,
}

// Diurnal is a rate with a regular daily curve, lowest at 4 in the morning and highest at 9 in the
// evening, with a noise that differs from day to day: its logarithm changes by a deviation of 0.076
// from point to point.
func Diurnal(days int, rng *rand.Rand) *Curve {
	noise := logNoise(rng, noiseComponent{0.15, 75 * time.Minute})
	return shape(days, func(t time.Duration) float64 {
		sinceMiddle := (t + 23*time.Hour + 30*time.Minute) % (24 * time.Hour)
		hour := int(sinceMiddle / time.Hour)
		share := float64(sinceMiddle%time.Hour) / float64(time.Hour)
		return interpolate(hourFactors[hour], hourFactors[(hour+1)%24], share) * noise()
	})
}

// Wandering is a rate that hardly depends on the time of day, after a large model of the same
// service: one day does not predict the next.
func Wandering(days int, rng *rand.Rand) *Curve {
	noise := logNoise(rng, noiseComponent{0.165, 30 * time.Minute},
		noiseComponent{0.21, 6 * time.Hour})
	return shape(days, func(time.Duration) float64 { return noise() })
}

func shape(days int, rate func(time.Duration) float64) *Curve {
	period := time.Duration(max(1, days)) * 24 * time.Hour
	var at []time.Duration
	var rates []float64
	for t := time.Duration(0); t < period; t += shapeStep {
		at, rates = append(at, t), append(rates, rate(t))
	}
	c, err := NewCurve(at, rates, period)
	if err != nil {
		panic(err) // the rates are positive and the times ours
	}
	return c
}

// noiseComponent is a component of noise: the deviation of the logarithm, and its correlation time.
type noiseComponent struct {
	deviation float64
	memory    time.Duration
}

// logNoise returns log-normal noise, point by point.
func logNoise(rng *rand.Rand, parts ...noiseComponent) func() float64 {
	states := make([]float64, len(parts))
	for i := range states {
		states[i] = normal(rng)
	}
	return func() float64 {
		sum := 0.0
		for i, p := range parts {
			keep := portable.Exp(-shapeStep.Seconds() / p.memory.Seconds())
			states[i] = keep*states[i] +
				math.Sqrt(1-keep*keep)*normal(
					rng)
			sum += p.deviation * states[i]
		}
		return portable.Exp(sum)
	}
}
