package engine

import "time"

// Law is the time of one engine iteration, in milliseconds:
//
//	T = C0 + C1·n + C2·max(0, n-N0) + KV·S + Σ over prefill chunks [ P1·c + P2·c·(k + c/2) ]
//
// n counts the tokens scheduled (one per decoding request, plus all chunk
// tokens), S the context tokens the decoding requests attend to, c the tokens
// of a chunk and k the context computed before it. Below N0 an iteration is
// bound by reading the weights, so decoding is nearly free there; above, by
// arithmetic.
type Law struct {
	C0 float64 // fixed cost: weights, all-reduce floor, launches, host
	C1 float64 // per token
	// per token beyond N0; below 0, to -C1 at most, where a fit finds small batches the dearer
	C2 float64
	N0 int     // knee, in tokens
	KV float64 // per token of context read by decoding
	P1 float64 // per prefill token, attention
	P2 float64 // per prefill token and token of its context
}

// Chunk is a part of a prompt computed in one iteration.
type Chunk struct {
	Tokens  int
	Context int // tokens of the same request computed before
}

// Iteration is the time of an iteration of decoding requests whose contexts sum
// to context tokens, together with the given prefill chunks.
func (l Law) Iteration(decoding, context int, chunks ...Chunk) time.Duration {
	tokens, prefill := decoding, 0.0
	for _, c := range chunks {
		tokens += c.Tokens
		prefill += l.chunk(c)
	}
	return milliseconds(l.iteration(tokens, context, prefill))
}

func (l Law) iteration(tokens, context int, prefill float64) float64 {
	return l.C0 + float64(l.C1*float64(tokens)) + float64(l.C2*float64(max(0, tokens-l.N0))) +
		float64(l.KV*float64(context)) + prefill
}

func (l Law) chunk(c Chunk) float64 {
	tokens := float64(c.Tokens)
	return float64(l.P1*tokens) + float64(l.P2*tokens*(float64(c.Context)+float64(tokens/2)))
}

func milliseconds(ms float64) time.Duration {
	return time.Duration(ms * float64(time.Millisecond))
}
