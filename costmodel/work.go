package costmodel

import (
	"errors"
	"fmt"
	"math"

	"github.com/tidefill/tidefill/internal/portable"
)

// LineWork returns the work of a request of the given numbers of tokens, in milliseconds of engine
// iteration, so that requests with long prompts and requests with long answers can be compared. It
// leaves out C0, which all requests of an iteration share.
func (m Model) LineWork(prompt, output int) float64 {
	in, out := float64(prompt), float64(output)
	decode := m.C1 + portable.Rounded(m.KV*(in+portable.Rounded(out/2)))
	return portable.Rounded(m.PromptToken(in)*in) + portable.Rounded(decode*out)
}

// AssumedRate is the work that an engine is assumed to do per second, in milliseconds of iteration,
// as long as nothing is known of it. An engine that never rests does 1,000. Assuming too little
// starts jobs and replicas early, which is the safe side.
const AssumedRate = 500

// AssumedOutputTokens is the number of tokens that an answer is assumed to have while no answer of
// its model is known.
const AssumedOutputTokens = 256

// Estimate counts work without a Model. Planning and ordering compare jobs of any model with it, so
// it has to be about right in its ratios, not in its scale. Start from DefaultEstimate.
type Estimate struct {
	// PromptToken is the work of one prompt token, in milliseconds of engine iteration, above 0.
	// Default: 0.19, a 70B model on four A100.
	PromptToken float64 `yaml:"prompt_token"`
	// OutputToken is the work of one output token, in milliseconds of engine iteration, above 0.
	// Default: 0.15, of the same model.
	OutputToken float64 `yaml:"output_token"`
	// OutputTokens is the assumed length of an answer while no answer of the model has been seen,
	// at least 1. Default: 256.
	OutputTokens int `yaml:"output_tokens"`
	// AssumedRate is the assumed work per second of a pool whose rate is not known yet, above 0.
	// One engine does at most 1,000 (milliseconds of iteration per second). Too low a value starts
	// jobs early, which is the safe side. Default: 500, half an engine.
	AssumedRate float64 `yaml:"assumed_rate"`
}

// DefaultEstimate returns the costs of Llama-2-70B on four A100.
func DefaultEstimate() Estimate {
	return Estimate{PromptToken: 0.19, OutputToken: 0.15, OutputTokens: AssumedOutputTokens,
		AssumedRate: AssumedRate}
}

// Validate reports every fault with the name of its field.
func (e Estimate) Validate() error {
	var faults []error
	positive := func(name string, x float64) {
		if !(x > 0) || math.IsInf(x, 1) {
			faults = append(faults, fmt.Errorf("%s: is %v, must be above 0", name, x))
		}
	}
	positive("prompt_token", e.PromptToken)
	positive("output_token", e.OutputToken)
	positive("assumed_rate", e.AssumedRate)
	if e.OutputTokens < 1 {
		faults = append(faults, fmt.Errorf("output_tokens: is %d, must be at least 1",
			e.OutputTokens))
	}
	return errors.Join(faults...)
}

// Work returns the work of the given numbers of tokens, in milliseconds of engine iteration.
func (e Estimate) Work(prompt, output float64) float64 {
	return portable.Rounded(e.PromptToken*prompt) + portable.Rounded(e.OutputToken*output)
}
