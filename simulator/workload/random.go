package workload

import (
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/tidefill/tidefill/internal/portable"
)

// Seed determines all randomness of one run.
type Seed uint64

// Rand returns the random sequence of one cause of randomness, by its name.
func (s Seed) Rand(name string) *rand.Rand {
	return rand.New(rand.NewPCG(s.derive(name), mix(s.derive(name))))
}

func (s Seed) derive(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return mix(mix(uint64(s)) + h.Sum64())
}

// mix spreads every bit of x over the result (the finalizer of SplitMix64). It is a bijection.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// normal draws a standard normal variable.
func normal(rng *rand.Rand) float64 {
	x, _ := portable.Normals(rng)
	return x
}

// gamma draws a gamma variable with the given shape and mean 1, by the method of Marsaglia and
// Tsang.
func gamma(rng *rand.Rand, shape float64) float64 {
	boost := 1.0
	k := shape
	if k < 1 {
		boost = portable.Exp(portable.Log(portable.Positive(rng)) / k)
		k++
	}
	d := k - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := normal(rng)
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		accept := x*x/2 + d - d*v +
			d*portable.Log(v)
		if portable.Log(portable.Positive(rng)) < accept {
			return d * v * boost / shape
		}
	}
}
