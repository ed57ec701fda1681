package workload

import (
	"math"
	"testing"
)

func TestExpAndLogAgreeWithMath(t *testing.T) {
	rng := dice(1)
	agree := func(name string, ours, theirs func(float64) float64, x float64) {
		t.Helper()
		got, want := ours(x), theirs(x)
		if got != want && !(math.Abs(got-want) <= 4e-16*math.Abs(want)) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s(%v) is %v, want %v", name, x, got, want)
		}
	}
	for range 100_000 {
		agree("exp", exp, math.Exp, 1400*rng.Float64()-700)
		agree("exp", exp, math.Exp, rng.Float64()-0.5)
		agree("log", log, math.Log, math.Ldexp(1+rng.Float64(), rng.IntN(2000)-1000))
		agree("log", log, math.Log, 1+(rng.Float64()-0.5)/8)
	}
	for _, x := range []float64{0, 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 1e-300, 710, -746, math.MaxFloat64} {
		agree("exp", exp, math.Exp, x)
		agree("log", log, math.Log, x)
	}
	// Below the normal numbers math.Log is wrong on amd64.
	for x, want := range map[float64]float64{0x1p-1074: -1074 * math.Ln2, 0x1p-1030: -1030 * math.Ln2} {
		agree("log", log, func(float64) float64 { return want }, x)
	}
}

func TestDrawsHaveTheirMoments(t *testing.T) {
	const n = 400_000
	rng := dice(2)
	for _, c := range []struct {
		name           string
		draw           func() float64
		mean, variance float64
	}{
		{"exponential", func() float64 { return exponential(rng) }, 1, 1},
		{"normal", func() float64 { return normal(rng) }, 0, 1},
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
		if variance := squares/n - mean*mean; math.Abs(mean-c.mean) > 0.01 || math.Abs(variance-c.variance) > 0.03*c.variance {
			t.Errorf("%s: mean %v and variance %v, want %v and %v", c.name, mean, variance, c.mean, c.variance)
		}
	}
}

func TestCausesDiffer(t *testing.T) {
	seen := map[uint64]string{}
	for seed := range Seed(50) {
		for _, name := range []string{"", "a", "b", "arrivals", "lengths"} {
			x := seed.Cause(name).Uint64()
			if other, twice := seen[x]; twice {
				t.Errorf("seed %d, cause %q begins like %s", seed, name, other)
			}
			seen[x] = name
			if again := seed.Cause(name).Uint64(); again != x {
				t.Errorf("seed %d, cause %q begins with %d, then with %d", seed, name, x, again)
			}
		}
	}
}
