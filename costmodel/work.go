package costmodel

import (
	"errors"
	"fmt"
	"math"
)

// LineWork returns the work of a request with the given numbers of prompt and output tokens, in
// milliseconds of engine iteration. It makes requests with long prompts and requests with long
// answers comparable. It leaves out C0, the fixed time of an iteration, because all requests of an
// iteration share it. While the answer grows, a request has on average half of its output as
// context.
func (m Model) LineWork(prompt, output int) float64 {
	in, out := float64(prompt), float64(output)
	decode := m.C1 + m.KV*(in+out/2)
	return m.PromptToken(in)*in + decode*out
}

// AssumedRate is the work that an engine is assumed to do per second, in milliseconds of engine
// iteration, until its rate is measured. An engine that is never idle does 1,000. A value that is
// too low starts jobs and replicas too early, which is safe; one that is too high starts them too
// late.
const AssumedRate = 500

// AssumedOutputTokens is the number of tokens that an answer is assumed to have until the first
// answer of its model was received.
const AssumedOutputTokens = 256

// Estimate estimates work from fixed costs per token, without a Model. Planning and ordering only
// compare the work of jobs, so the ratio of the two costs matters more than their scale. Start from
// DefaultEstimate.
type Estimate struct {
	// PromptToken is the work of one prompt token, in milliseconds of engine iteration, above 0.
	// Default: 0.19, measured for a 70B model on four A100.
	PromptToken float64 `yaml:"prompt_token"`
	// OutputToken is the work of one output token, in milliseconds of engine iteration, above 0.
	// Default: 0.15, measured for the same model.
	OutputToken float64 `yaml:"output_token"`
	// OutputTokens is the assumed length of an answer, in tokens, until the first answer of the
	// model was received, at least 1. It is no key.
	OutputTokens int `yaml:"-"`
	// AssumedRate is the assumed work per second of a pool whose rate is not measured yet, above 0.
	// It is no key: tests set it.
	AssumedRate float64 `yaml:"-"`
}

// DefaultEstimate returns the estimate for Llama-2-70B on four A100.
func DefaultEstimate() Estimate {
	return Estimate{PromptToken: 0.19, OutputToken: 0.15, OutputTokens: AssumedOutputTokens,
		AssumedRate: AssumedRate}
}

// Validate reports every invalid field with its name.
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

// Work returns the work of the given numbers of prompt and output tokens, in milliseconds of engine
// iteration.
func (e Estimate) Work(prompt, output float64) float64 {
	return e.PromptToken*prompt + e.OutputToken*output
}
