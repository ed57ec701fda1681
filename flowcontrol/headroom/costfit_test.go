package headroom

import (
	"testing"

	"github.com/tidefill/tidefill/costmodel"
)

// Under a load that stays the same for hours nothing distinguishes the coefficients. What is not
// known then must not grow until corrections go the wrong way.
func TestConstantLoadLeavesTheFitUsable(t *testing.T) {
	model := costmodel.Model{C0: 33, C1: 0.15, KV: 5e-5, P1: 0.04}
	f := newCostFit(model, 4, 3000)
	for range 100_000 {
		f.add(150, 0, 90)
	}
	predicted := func(decoding float64) float64 {
		return f.perIteration() + decoding*f.perSequence()
	}
	if got := predicted(150); !near(got, 90) {
		t.Errorf("the iteration is predicted to take %v ms, want 90", got)
	}
	for i := range 3 {
		for j := range i {
			if v, a, b := f.covariance[i][j], f.covariance[i][i], f.covariance[j][j]; v*v > a*b {
				t.Errorf("the errors of %d and %d have a covariance of %v, variances %v and %v",
					i, j, v, a, b)
			}
		}
	}
	for range 2000 { // now the load differs
		f.add(150, 0, 90)
		f.add(20, 0, 60)
	}
	for decoding, want := range map[float64]float64{20: 60, 150: 90} {
		if got := predicted(decoding); got < 0.95*want || got > 1.05*want {
			t.Errorf("with %v requests it is predicted to take %v ms, want %v", decoding, got, want)
		}
	}
}
