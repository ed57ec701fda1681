package emulator

import (
	"math"
	"math/rand/v2"
)

// draw draws a length, at least 1.
func (l Lengths) draw(rng *rand.Rand) int {
	tokens := l.Median * math.Exp(l.Sigma*rng.NormFloat64())
	return max(1, min(l.Max, int(math.Min(tokens, math.MaxInt32))))
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// hash continues an FNV-1a hash over data.
func hash[T ~string | ~[]byte](h uint64, data T) uint64 {
	for i := range len(data) {
		h = (h ^ uint64(data[i])) * fnvPrime
	}
	return h
}

// mix spreads the bits of x (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
