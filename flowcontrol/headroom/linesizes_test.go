package headroom

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// What lines and users take at most together adds up by squares.
func TestFittingLines(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		kv := lineKV{rapid.Float64Range(1, 1e4).Draw(rt, "mean"),
			rapid.Float64Range(0, 1e4).Draw(rt, "deviation")}
		tokens := rapid.Float64Range(0, 1e6).Draw(rt, "tokens")
		wanted := rapid.Float64Range(0, 1e6).Draw(rt, "wanted")
		deviations := rapid.Float64Range(0, 5).Draw(rt, "deviations")
		n := kv.fitting(tokens, wanted, deviations)
		if tokens <= wanted {
			if n != 0 {
				rt.Fatalf("%v lines where users may want all", n)
			}
			return
		}
		took := n*kv.mean + math.Hypot(math.Sqrt(n)*deviations*kv.deviation, wanted)
		if math.Abs(took-tokens) > 1e-6*tokens+1e-6 {
			rt.Fatalf("%v lines and their users take %v of %v tokens", n, took, tokens)
		}
	})
}

func TestFittingLinesOfOneSize(t *testing.T) {
	kv := lineKV{mean: 100}
	for _, test := range []struct{ tokens, wanted, want float64 }{
		{1000, 0, 10}, {1000, 300, 7}, {1000, 1000, 0}, {1000, 2000, 0}, {0, 0, 0}, {-5, 0, 0},
	} {
		if got := kv.fitting(test.tokens, test.wanted, 2); !near(got, test.want) {
			t.Errorf("%v lines fit into %v tokens less %v, want %v", got, test.tokens, test.wanted,
				test.want)
		}
	}
}
