package fit

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The optimum of non-negative least squares is where the gradient is 0 at positive coefficients and
// not below 0 at the others.
func TestNonNegativeIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "columns")
		value := rapid.Float64Range(-10, 10)
		if rapid.Bool().Draw(t, "alike") { // columns that may be the same
			value = rapid.Map(rapid.IntRange(-1, 1), func(i int) float64 { return float64(i) })
		}
		rows := rapid.SliceOfN(rapid.SliceOfN(value, n+1, n+1), 1, 20).Draw(t, "rows")
		tr := newRFactor(n + 1)
		for _, row := range rows {
			tr.add(row, 1)
		}
		x := tr.nonNegative()
		size := 1.0
		for j := range n + 1 {
			size = max(size, tr.norm(j))
		}
		for j := range n {
			gradient := 0.0
			for _, row := range rows {
				r := row[n]
				for k := range n {
					r -= row[k] * x[k]
				}
				gradient -= row[j] * r
			}
			tolerance := 1e-6 * size * size * max(1, x[j])
			switch {
			case x[j] < 0 || math.IsNaN(x[j]):
				t.Fatalf("x = %v", x)
			case gradient < -tolerance:
				t.Fatalf("x = %v: more of column %d would do better (gradient %g)", x, j, gradient)
			case x[j] > 0 && gradient > tolerance:
				t.Fatalf("x = %v: less of column %d would do better (gradient %g)", x, j, gradient)
			}
		}
	})
}

func TestInflation(t *testing.T) {
	tr := newRFactor(4)
	for i := range 100 {
		a, b := float64(i%10), float64(i/10)
		tr.add([]float64{1, a, b, 3}, 1)
	}
	if v := tr.inflation(1); math.Abs(v-1) > 1e-9 {
		t.Errorf("independent columns inflate by %g, want 1", v)
	}
	same := newRFactor(4)
	for i := range 100 {
		same.add([]float64{1, float64(i), 2*float64(i) + 5, 3}, 1)
	}
	if v := same.inflation(1); v < 1e12 {
		t.Errorf("dependent columns inflate by %g", v)
	}
}
