package costmodel

import (
	"errors"
	"fmt"
	"math"
)

// Model predicts the time of one engine iteration, in milliseconds:
//
//	T = C0 + C1·n + C2·max(0, n-N0) + KV·S + Σ over prefill chunks [ P1·c + P2·c·(k + c/2) ]
//
// n is the number of tokens in the iteration: one for each decoding request, and all tokens of
// prefill chunks. S is the number of context tokens that the decoding requests attend to. c is the
// number of tokens of a chunk, k the number of tokens of the same request computed before it.
//
// Below the knee N0, reading the weights dominates and decoding is nearly free. Above it,
// arithmetic dominates.
//
// The zero value is an unknown model; see Known.
type Model struct {
	// C0 is the fixed time of an iteration: weights, all-reduce, kernel launches, host.
	C0 float64 `yaml:"c0"`
	// C1 is the time per token.
	C1 float64 `yaml:"c1"`
	// C2 is the additional time per token beyond N0. It may be negative, down to -C1, for engines
	// whose kernels make the first tokens of an iteration dearer than the next.
	C2 float64 `yaml:"c2"`
	// N0 is the knee in tokens: arithmetic dominates above it, reading the weights below.
	N0 float64 `yaml:"n0"`
	// KV is the time per context token that decoding requests attend to.
	KV float64 `yaml:"kv"`
	// P1 is the additional time per prefill token.
	P1 float64 `yaml:"p1"`
	// P2 is the time per prefill token and token of its context.
	P2 float64 `yaml:"p2"`
}

// Chunk is a part of a prompt that is computed in one iteration.
type Chunk struct {
	Tokens  int
	Context int // tokens of the same request computed before
}

// Known reports whether any coefficient is set.
func (m Model) Known() bool { return m != Model{} }

// Validate reports every coefficient that is not a finite number of at least 0, each fault with the
// coefficient's name. Only C2 may be negative, down to -C1. The zero Model is valid.
func (m Model) Validate() error {
	var faults []error
	for _, c := range []struct {
		name  string
		value float64
	}{{"c0", m.C0}, {"c1", m.C1}, {"n0", m.N0}, {"kv", m.KV}, {"p1", m.P1}, {"p2", m.P2}} {
		if !(c.value >= 0) || math.IsInf(c.value, 1) {
			faults = append(faults, fmt.Errorf("%s: is %v, must be a number of at least 0", c.name,
				c.value))
		}
	}
	if !(m.C1+m.C2 >= 0) || math.IsInf(m.C2, 1) {
		faults = append(faults, fmt.Errorf("c2: is %v, must be a number of at least -c1", m.C2))
	}
	return errors.Join(faults...)
}

// Iteration returns the time of an iteration in milliseconds. tokens counts the decoding requests
// and the tokens of prefill chunks, context the tokens that the decoding requests attend to, and
// prefill is the sum of Prefill over the chunks.
func (m Model) Iteration(tokens, context, prefill float64) float64 {
	return m.C0 + m.C1*tokens + m.C2*max(0, tokens-m.N0) +
		m.KV*context + prefill
}

// Prefill returns the time that a chunk adds to an iteration beyond the cost of its tokens, in
// milliseconds.
func (m Model) Prefill(c Chunk) float64 {
	tokens := float64(c.Tokens)
	return m.P1*tokens +
		m.P2*tokens*(float64(c.Context)+tokens/2)
}

// PromptToken returns the cost of one prompt token, in milliseconds of iteration, averaged over a
// prompt of the given length. Chunks of prompts make iterations large, so each token counts as one
// beyond the knee.
func (m Model) PromptToken(prompt float64) float64 {
	return m.C1 + m.C2 + m.P1 + m.P2*prompt/2
}
