package portable

import (
	"math"
	"math/rand/v2"
)

// Positive draws evenly from above 0 to 1.
func Positive(rng *rand.Rand) float64 { return 1 - float64(rng.Float64()) }

// Exponential draws with mean 1.
func Exponential(rng *rand.Rand) float64 { return -Log(Positive(rng)) }

// Normals draws two that are independent, with mean 0 and deviation 1, by
// Marsaglia's polar method.
func Normals(rng *rand.Rand) (a, b float64) {
	for {
		u := 1 - float64(2*Positive(rng))
		v := 1 - float64(2*Positive(rng))
		s := float64(u*u) + float64(v*v)
		if s > 0 && s < 1 {
			scale := math.Sqrt(-2 * Log(s) / s)
			return u * scale, v * scale
		}
	}
}
