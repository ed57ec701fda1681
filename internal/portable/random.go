package portable

import (
	"math"
	"math/rand/v2"
)

// Positive draws uniformly from (0, 1].
func Positive(rng *rand.Rand) float64 { return 1 - rng.Float64() }

// Exponential draws from the exponential distribution with mean 1.
func Exponential(rng *rand.Rand) float64 { return -Log(Positive(rng)) }

// Normals draws two independent standard normal variables by Marsaglia's polar method.
func Normals(rng *rand.Rand) (a, b float64) {
	for {
		u := 1 - 2*Positive(rng)
		v := 1 - 2*Positive(rng)
		s := u*u + v*v
		if s > 0 && s < 1 {
			scale := math.Sqrt(-2 * Log(s) / s)
			return u * scale, v * scale
		}
	}
}
