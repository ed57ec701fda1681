package random

import (
	"math/rand/v2"
	"slices"

	"github.com/tidefill/tidefill/internal/portable"
)

// Range is a distribution of numbers between two bounds.
type Range struct {
	Low, High float64
	// Log makes the logarithm uniform instead of the number.
	Log bool
	// Skew above 1 moves numbers toward Low: the position in the range is a uniform number to the
	// power of Skew. 0: 1.
	Skew float64
}

func (r Range) draw(rng *rand.Rand) float64 {
	at := rng.Float64()
	if r.Skew > 0 && r.Skew != 1 && at > 0 {
		at = portable.Exp(r.Skew * portable.Log(at))
	}
	if r.Log {
		return r.Low * portable.Exp(at*portable.Log(r.High/r.Low))
	}
	return r.Low + at*(r.High-r.Low)
}

// Weighted is a value that is drawn with a probability proportional to its weight.
type Weighted[T any] struct {
	Value  T
	Weight float64
}

func choose[T any](rng *rand.Rand, from []Weighted[T]) T {
	total := 0.0
	for _, w := range from {
		total += w.Weight
	}
	rest := rng.Float64() * total
	for _, w := range from[:len(from)-1] {
		if rest -= w.Weight; rest < 0 {
			return w.Value
		}
	}
	return from[len(from)-1].Value
}

func pick[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }

func chance(rng *rand.Rand, share float64) bool { return rng.Float64() < share }

func without[T comparable](from []Weighted[T], value T) []Weighted[T] {
	return slices.DeleteFunc(slices.Clone(from), func(w Weighted[T]) bool {
		return w.Value == value
	})
}
