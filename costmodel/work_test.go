package costmodel_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/costmodel"
)

// The work of a line is what it adds to the iterations it takes part in.
func TestLineWorkIsWhatALineAdds(t *testing.T) {
	m := llama70B
	m.C2, m.P2 = 0, 0 // so that the order of iterations does not matter
	const prompt, output = 300, 80
	want := m.Iteration(prompt, 0, m.Prefill(costmodel.Chunk{Tokens: prompt})) - m.C0
	for k := range output {
		want += m.Iteration(1, prompt+float64(k)+0.5, 0) - m.C0
	}
	near(t, "work", m.LineWork(prompt, output), want)
}

// The default estimate is the rounded cost of a line of 500 prompt and 400 output tokens.
func TestDefaultEstimateFollowsTheModel(t *testing.T) {
	e := costmodel.DefaultEstimate()
	hundredth := func(x float64) float64 { return math.Round(100*x) / 100 }
	if got := hundredth(llama70B.PromptToken(500)); got != e.PromptToken {
		t.Errorf("a prompt token costs %v by the model, %v by the estimate", got, e.PromptToken)
	}
	if got := hundredth(llama70B.C1 + llama70B.KV*(500+400/2)); got != e.OutputToken {
		t.Errorf("an output token costs %v by the model, %v by the estimate", got, e.OutputToken)
	}
	near(t, "work", e.Work(500, 400), 500*0.19+400*0.15)
}

func TestEstimateNamesItsFaults(t *testing.T) {
	if err := costmodel.DefaultEstimate().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
	for want, spoil := range map[string]func(*costmodel.Estimate){
		"prompt_token: ":  func(e *costmodel.Estimate) { e.PromptToken = 0 },
		"output_token: ":  func(e *costmodel.Estimate) { e.OutputToken = math.NaN() },
		"output_tokens: ": func(e *costmodel.Estimate) { e.OutputTokens = 0 },
		"assumed_rate: ":  func(e *costmodel.Estimate) { e.AssumedRate = math.Inf(1) },
	} {
		e := costmodel.DefaultEstimate()
		spoil(&e)
		if err := e.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a fault of %s", err, want)
		}
	}
}
