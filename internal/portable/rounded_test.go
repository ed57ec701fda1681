package portable

import "testing"

var sink float64

// BenchmarkRounded compares a sum of products with and without Rounded. The two take the same time
// where the processor has no fused multiply-add or the compiler does not use it (amd64).
func BenchmarkRounded(b *testing.B) {
	x := [4]float64{1.1, 2.2, 3.3, 4.4}
	b.Run("with", func(b *testing.B) {
		for b.Loop() {
			sink = Rounded(x[0]*x[1]) + Rounded(x[2]*x[3]) + sink/2
		}
	})
	b.Run("without", func(b *testing.B) {
		for b.Loop() {
			sink = x[0]*x[1] + x[2]*x[3] + sink/2
		}
	})
}
