package workload

import (
	"math"
	"testing"
)

func TestDrawsHaveTheirMoments(t *testing.T) {
	const n = 400_000
	rng := dice(2)
	for _, c := range []struct {
		name           string
		draw           func() float64
		mean, variance float64
	}{
		{"gamma 0.5", func() float64 { return gamma(rng, 0.5) }, 1, 2},
		{"gamma 4", func() float64 { return gamma(rng, 4) }, 1, 0.25},
	} {
		sum, squares := 0.0, 0.0
		for range n {
			x := c.draw()
			sum += x
			squares += x * x
		}
		mean := sum / n
		if variance := squares/n - mean*mean; math.Abs(mean-c.mean) > 0.01 ||
			math.Abs(variance-c.variance) > 0.03*c.variance {
			t.Errorf("%s: mean %v and variance %v, want %v and %v", c.name, mean, variance, c.mean,
				c.variance)
		}
	}
}

func TestCausesDiffer(t *testing.T) {
	seen := map[uint64]string{}
	for seed := range Seed(50) {
		for _, name := range []string{"", "a", "b", "arrivals", "lengths"} {
			x := seed.Rand(name).Uint64()
			if other, twice := seen[x]; twice {
				t.Errorf("seed %d, cause %q begins like %s", seed, name, other)
			}
			seen[x] = name
			if again := seed.Rand(name).Uint64(); again != x {
				t.Errorf("seed %d, cause %q begins with %d, then with %d", seed, name, x, again)
			}
		}
	}
}
