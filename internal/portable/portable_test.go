package portable

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestExpAndLogAgreeWithMath(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	agree := func(name string, ours, theirs func(float64) float64, x float64) {
		t.Helper()
		got, want := ours(x), theirs(x)
		if got != want && !(math.Abs(got-want) <= 4e-16*math.Abs(want)) &&
			!(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s(%v) is %v, want %v", name, x, got, want)
		}
	}
	for range 100_000 {
		agree("exp", Exp, math.Exp, 1400*rng.Float64()-700)
		agree("exp", Exp, math.Exp, rng.Float64()-0.5)
		agree("log", Log, math.Log, math.Ldexp(1+rng.Float64(), rng.IntN(2000)-1000))
		agree("log", Log, math.Log, 1+(rng.Float64()-0.5)/8)
	}
	for _, x := range []float64{0, 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 1e-300, 710, -746,
		math.MaxFloat64} {
		agree("exp", Exp, math.Exp, x)
		agree("log", Log, math.Log, x)
	}
	// Below the normal numbers math.Log is wrong on amd64.
	for x, want := range map[float64]float64{0x1p-1074: -1074 * math.Ln2,
		0x1p-1030: -1030 * math.Ln2} {
		agree("log", Log, func(float64) float64 { return want }, x)
	}
}

func TestDrawsHaveTheirMoments(t *testing.T) {
	const n = 400_000
	rng := rand.New(rand.NewPCG(2, 0))
	first := func() float64 { a, _ := Normals(rng); return a }
	second := func() float64 { _, b := Normals(rng); return b }
	together := func() float64 { a, b := Normals(rng); return a * b }
	for _, c := range []struct {
		name           string
		draw           func() float64
		mean, variance float64
	}{
		{"exponential", func() float64 { return Exponential(rng) }, 1, 1},
		{"first of two normals", first, 0, 1}, {"second", second, 0, 1},
		{"their product", together, 0, 1},
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
