package engine

import (
	"math"
	"testing"
	"time"
)

func within(t *testing.T, what string, got time.Duration, want, tolerance float64) {
	t.Helper()
	ms := float64(got) / float64(time.Millisecond)
	if math.Abs(ms-want) > tolerance*want {
		t.Errorf("%s: %.2f ms, want %.2f within %.0f %%", what, ms, want, 100*tolerance)
	}
}

func law(t *testing.T, name string) Law {
	t.Helper()
	p, ok := ProfileNamed(name)
	if !ok {
		t.Fatalf("no profile %q", name)
	}
	return p.Law
}

// Medians of 1,251 iterations of a real vLLM 0.15.1 (Llama-2-70B, four H100)
// by number of decoding requests, with about 700 tokens of context each.
func TestLawAgainstRealIterations(t *testing.T) {
	l := law(t, "llama-70b-h100")
	for _, row := range []struct {
		from, to int
		real     float64
	}{
		{8, 16, 16.3}, {17, 24, 17.1}, {25, 32, 17.8}, {33, 40, 18.5}, {41, 48, 18.9},
		{49, 56, 19.1}, {57, 72, 19.1}, {73, 96, 21.1}, {97, 112, 21.5}, {113, 128, 22.1},
	} {
		n := (row.from + row.to) / 2
		within(t, "decoding", l.Iteration(n, 700*n), row.real, 0.04)
	}
	within(t, "128 long contexts", l.Iteration(128, 231_000), 30.0, 0.02)
}

// Sums of measured linear operators for n tokens. The law adds launches and host
// (3.1 ms) and, on several GPUs, all-reduces: 4.6 ms and more as n grows.
func TestLawAgainstOperators(t *testing.T) {
	linear := func(profile string) Law {
		l := law(t, profile)
		l.KV, l.P1, l.P2 = 0, 0, 0
		return l
	}
	for n, operators := range map[int]float64{1: 9.8, 64: 11.3, 256: 19.6, 512: 34.8, 2048: 144.5,
		4096: 275} {
		within(t, "8B on one A100", linear("llama-8b-a100").Iteration(n, 0), operators+3.1, 0.12)
	}
	for n, operators := range map[int]float64{1: 25.0, 64: 27.1, 256: 51.5, 512: 90.2, 2048: 337,
		4096: 646} {
		allReduce := linear("llama-70b-a100").Iteration(n, 0) - milliseconds(operators+3.1)
		if least, most := 4*time.Millisecond, milliseconds(14+operators/5); allReduce < least ||
			allReduce > most {
			t.Errorf("70B on four A100, %d tokens: %v left for all-reduces, want %v to %v", n,
				allReduce, least, most)
		}
	}
}

func TestLawOfPrefill(t *testing.T) {
	a100 := law(t, "llama-70b-a100")
	within(t, "a full chunk", a100.Iteration(0, 0, Chunk{Tokens: 512}), 122.3, 0.01)
	within(t, "a full chunk at context 3000",
		a100.Iteration(0, 0, Chunk{Tokens: 512, Context: 3000}), 130, 0.01)
	// What one more prefill token costs every running stream.
	for profile, want := range map[string]float64{"llama-70b-a100": 0.19, "llama-70b-h100": 0.06} {
		l := law(t, profile)
		per := l.Iteration(30, 21_000, Chunk{Tokens: 400}) - l.Iteration(30, 21_000,
			Chunk{Tokens: 300})
		within(t, profile+" per token", per/100, want, 0.05)
	}
}

func TestLegacyHostCostsMore(t *testing.T) {
	for requests, want := range map[int]float64{0: 7.7, 128: 12.7, 500: 12.7} {
		if got := HostLegacy.extra(requests); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d requests: %v ms, want %v", requests, got, want)
		}
	}
}

func TestServerDelay(t *testing.T) {
	if got, want := ServerDelay(100), 21*time.Millisecond; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
