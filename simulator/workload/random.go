package workload

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// Seed stands for all the randomness of one run.
type Seed uint64

// Cause is the sequence of one cause of randomness, by its name.
func (s Seed) Cause(name string) *rand.Rand {
	return rand.New(rand.NewPCG(s.derive(name), mix(s.derive(name))))
}

func (s Seed) derive(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return mix(mix(uint64(s)) + h.Sum64())
}

// mix spreads every bit of x over the result (the finalizer of SplitMix64); it
// is a bijection.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// exponential draws with mean 1. rand.ExpFloat64 would use math.Log.
func exponential(rng *rand.Rand) float64 { return -log(positive(rng)) }

// positive draws evenly from above 0 to 1.
func positive(rng *rand.Rand) float64 { return 1 - float64(rng.Float64()) }

// normal draws with mean 0 and deviation 1, by Marsaglia's polar method.
func normal(rng *rand.Rand) float64 {
	for {
		u := 1 - float64(2*positive(rng))
		v := 1 - float64(2*positive(rng))
		s := float64(u*u) + float64(v*v)
		if s > 0 && s < 1 {
			return u * math.Sqrt(-2*log(s)/s)
		}
	}
}

// gamma draws with the given shape and mean 1, by Marsaglia and Tsang's method.
func gamma(rng *rand.Rand, shape float64) float64 {
	boost := 1.0
	k := shape
	if k < 1 {
		boost = exp(log(positive(rng)) / k)
		k++
	}
	d := k - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := normal(rng)
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = v * v * v
		accept := float64(x*x/2) + d - float64(d*v) + float64(d*log(v))
		if log(positive(rng)) < accept {
			return d * v * boost / shape
		}
	}
}
