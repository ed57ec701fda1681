package costmodel_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/costmodel"
)

// llama70B is Llama-2-70B on four A100.
var llama70B = costmodel.Model{C0: 33, C1: 0.112, C2: 0.0714, N0: 112, KV: 5.25e-5, P1: 0.0052,
	P2: 5.14e-6}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestIterationSumsItsTerms(t *testing.T) {
	near(t, "nothing", llama70B.Iteration(0, 0, 0), 33)
	near(t, "at the knee", llama70B.Iteration(112, 0, 0), 33+0.112*112)
	near(t, "beyond the knee", llama70B.Iteration(212, 0, 0), 33+0.112*212+0.0714*100)
	near(t, "context", llama70B.Iteration(1, 10_000, 0), 33+0.112+0.525)
	chunk := costmodel.Chunk{Tokens: 100, Context: 200}
	near(t, "prefill", llama70B.Prefill(chunk), 0.52+5.14e-6*100*250)
	near(t, "with prefill", llama70B.Iteration(100, 0, llama70B.Prefill(chunk)),
		33+11.2+0.52+5.14e-6*100*250)
}

// Chunks of one prompt cost as much in sum as the prompt computed at once.
func TestPrefillDoesNotDependOnChunks(t *testing.T) {
	whole, parts := llama70B.Prefill(costmodel.Chunk{Tokens: 1024}), 0.0
	for k := 0; k < 1024; k += 128 {
		parts += llama70B.Prefill(costmodel.Chunk{Tokens: 128, Context: k})
	}
	near(t, "sum of chunks", parts, whole)
	near(t, "by token", llama70B.PromptToken(1024)*1024-(0.112+0.0714)*1024, whole)
}

// Lines and MeanIteration are inverse to each other, on both sides of the knee.
func TestLinesIsTheInverseOfMeanIteration(t *testing.T) {
	mix := costmodel.Mix{Prompt: 500, Output: 200}
	for _, load := range []costmodel.Load{
		{},
		{Running: 20, Context: 16_000, PromptRate: 900, PromptMean: 600},
		{Running: 150, Context: 90_000, PromptRate: 300, PromptMean: 600},
	} {
		for _, lines := range []float64{0, 1, 40, 112, 180} {
			target := llama70B.MeanIteration(load, mix, lines)
			near(t, "lines", llama70B.Lines(load, mix, target), lines)
		}
		if got := llama70B.Lines(load, mix, 20); got >= 0 {
			t.Errorf("%v lines fit into 20 ms beside %+v, want fewer than none", got, load)
		}
	}
}

func TestMixWithoutContextAttendsToHalfItsOutput(t *testing.T) {
	if got := (costmodel.Mix{Prompt: 100, Output: 50}).MeanContext(); got != 125 {
		t.Errorf("got %v, want 125", got)
	}
	if got := (costmodel.Mix{Prompt: 100, Output: 50, Context: 140}).MeanContext(); got != 140 {
		t.Errorf("got %v, want 140", got)
	}
}

func TestValidateNamesTheCoefficient(t *testing.T) {
	if err := (costmodel.Model{}).Validate(); err != nil {
		t.Errorf("the unknown model: %v", err)
	}
	falling := llama70B
	falling.C2 = -falling.C1
	if err := falling.Validate(); err != nil {
		t.Errorf("c2 = -c1: %v", err)
	}
	for want, spoil := range map[string]func(*costmodel.Model){
		"c0: ": func(m *costmodel.Model) { m.C0 = -1 },
		"c1: ": func(m *costmodel.Model) { m.C1 = math.NaN() },
		"c2: ": func(m *costmodel.Model) { m.C2 = -m.C1 - 0.001 },
		"n0: ": func(m *costmodel.Model) { m.N0 = math.Inf(1) },
		"kv: ": func(m *costmodel.Model) { m.KV = -1e-9 },
		"p1: ": func(m *costmodel.Model) { m.P1 = math.Inf(1) },
		"p2: ": func(m *costmodel.Model) { m.P2 = math.NaN() },
	} {
		m := llama70B
		spoil(&m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a fault of %s", err, want)
		}
	}
}
