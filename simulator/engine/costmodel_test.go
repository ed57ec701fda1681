package engine_test

import (
	"math"
	"testing"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/simulator/engine"
)

func within(t *testing.T, what string, got time.Duration, want, tolerance float64) {
	t.Helper()
	ms := float64(got) / float64(time.Millisecond)
	if math.Abs(ms-want) > tolerance*want {
		t.Errorf("%s: %.2f ms, want %.2f within %.0f %%", what, ms, want, 100*tolerance)
	}
}

// modelOf returns the cost model of a built-in profile.
func modelOf(t *testing.T, name string) costmodel.Model {
	t.Helper()
	p, ok := engine.ProfileNamed(name)
	if !ok {
		t.Fatalf("no profile %q", name)
	}
	return p.CostModel
}

func milliseconds(ms float64) time.Duration {
	return time.Duration(ms * float64(time.Millisecond))
}

// iteration returns the time of an iteration of decoding requests whose contexts sum to context
// tokens, together with prefill chunks.
func iteration(
	m costmodel.Model, decoding, context int, chunks ...costmodel.Chunk,
) time.Duration {
	tokens, prefill := decoding, 0.0
	for _, c := range chunks {
		tokens += c.Tokens
		prefill += m.Prefill(c)
	}
	return milliseconds(m.Iteration(float64(tokens), float64(context), prefill))
}

// Medians of 1,251 iterations of a real vLLM 0.15.1 (Llama-2-70B, four H100)
// by number of decoding requests, with about 700 tokens of context each.
func TestCostModelAgainstRealIterations(t *testing.T) {
	m := modelOf(t, "llama-70b-h100")
	for _, row := range []struct {
		from, to int
		real     float64
	}{
		{8, 16, 16.3}, {17, 24, 17.1}, {25, 32, 17.8}, {33, 40, 18.5}, {41, 48, 18.9},
		{49, 56, 19.1}, {57, 72, 19.1}, {73, 96, 21.1}, {97, 112, 21.5}, {113, 128, 22.1},
	} {
		n := (row.from + row.to) / 2
		within(t, "decoding", iteration(m, n, 700*n), row.real, 0.04)
	}
	within(t, "128 long contexts", iteration(m, 128, 231_000), 30.0, 0.02)
}

// Sums of measured linear operators for n tokens. The model adds launches and host
// (3.1 ms) and, on several GPUs, all-reduces: 4.6 ms and more as n grows.
func TestCostModelAgainstOperators(t *testing.T) {
	linear := func(profile string) costmodel.Model {
		m := modelOf(t, profile)
		m.KV, m.P1, m.P2 = 0, 0, 0
		return m
	}
	for n, operators := range map[int]float64{1: 9.8, 64: 11.3, 256: 19.6, 512: 34.8, 2048: 144.5,
		4096: 275} {
		within(t, "8B on one A100", iteration(linear("llama-8b-a100"), n, 0), operators+3.1, 0.12)
	}
	for n, operators := range map[int]float64{1: 25.0, 64: 27.1, 256: 51.5, 512: 90.2, 2048: 337,
		4096: 646} {
		allReduce := iteration(linear("llama-70b-a100"), n, 0) - milliseconds(operators+3.1)
		if least, most := 4*time.Millisecond, milliseconds(14+operators/5); allReduce < least ||
			allReduce > most {
			t.Errorf("70B on four A100, %d tokens: %v left for all-reduces, want %v to %v", n,
				allReduce, least, most)
		}
	}
}

func TestCostOfPrefill(t *testing.T) {
	a100 := modelOf(t, "llama-70b-a100")
	within(t, "a full chunk", iteration(a100, 0, 0, costmodel.Chunk{Tokens: 512}), 122.3, 0.01)
	within(t, "a full chunk at context 3000",
		iteration(a100, 0, 0, costmodel.Chunk{Tokens: 512, Context: 3000}), 130, 0.01)
	// What one more prefill token costs every running stream.
	for profile, want := range map[string]float64{"llama-70b-a100": 0.19, "llama-70b-h100": 0.06} {
		m := modelOf(t, profile)
		per := iteration(m, 30, 21_000, costmodel.Chunk{Tokens: 400}) - iteration(m, 30, 21_000,
			costmodel.Chunk{Tokens: 300})
		within(t, profile+" per token", per/100, want, 0.05)
	}
}
