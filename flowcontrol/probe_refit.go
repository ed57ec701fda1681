package flowcontrol

import "github.com/tidefill/tidefill/costmodel"

// refit corrects a law by what is seen: the mean time of an iteration is base + sequence·(requests
// that decode) + token·(prompt tokens computed in it). Recursive least squares on the three
// coefficients as multiples of the law's, near which they begin and to which they are bounded.
// Their errors are told apart as far as the load moves; what can't be told apart stays as the law
// has it.
type refit struct {
	law                   costmodel.Model
	base, sequence, token float64 // as the law has them
	trust                 float64
	keep                  float64 // of the evidence, from one sample to the next

	factor     [3]float64
	covariance [3][3]float64
	samples    int
}

// guessedLaw is for an engine of which nothing is known but what its users are promised. Operators
// promise about three times what an idle engine needs for an iteration, and engines are built so
// that a full chunk takes about as long as the promise.
func guessedLaw(tpot float64) costmodel.Model {
	return costmodel.Model{C0: 0.35 * tpot, C1: tpot / 1200, KV: tpot / 1200 / 1000, P1: tpot / 800}
}

const (
	typicalContext = 1000 // tokens of a request that decodes
	// What a coefficient is off at first, and what a sample is, as shares of the law's prediction.
	// Interactive prompts, which come as they like, make single samples noisy.
	coefficientError = 0.5
	sampleError      = 0.3
)

func newRefit(law costmodel.Model, trust float64, memory int) refit {
	f := refit{
		law: law, base: law.C0, sequence: law.C1 + float64(law.KV*typicalContext),
		token: law.PromptToken(typicalContext),
		trust: trust, keep: 1 - 0.7/float64(memory), factor: [3]float64{1, 1, 1},
	}
	for i := range 3 {
		f.covariance[i][i] = coefficientError * coefficientError
	}
	return f
}

// learn takes note of an iteration of ms milliseconds in the mean, with so many requests decoding
// and prompt tokens computed.
func (f *refit) learn(decoding, tokens, ms float64) {
	x := [3]float64{f.base, float64(f.sequence * decoding), float64(f.token * tokens)}
	predicted := 0.0
	for i := range 3 {
		predicted += float64(x[i] * f.factor[i])
	}
	if !(predicted > 0) {
		return
	}
	f.samples++
	noise := float64(sampleError * predicted)
	var px [3]float64
	certainty := float64(noise * noise)
	for i := range 3 {
		for j := range 3 {
			px[i] += float64(f.covariance[i][j] * x[j])
		}
		certainty += float64(px[i] * x[i])
	}
	// One sample in ten is an interactive burst that no coefficient explains; it may not move them
	// all the way.
	off := min(max(ms-predicted, -2*noise), 2*noise)
	for i := range 3 {
		gain := px[i] / certainty
		f.factor[i] = min(max(f.factor[i]+float64(gain*off), 1/f.trust), f.trust)
	}
	for i := range 3 {
		for j := range 3 {
			f.covariance[i][j] -= px[i] * px[j] / certainty
		}
	}
	for i := range 3 { // forget, but never know less than at first
		for j := range 3 {
			if grown := f.covariance[i][j] / f.keep; i != j ||
				grown <= coefficientError*coefficientError {
				f.covariance[i][j] = grown
			}
		}
	}
}

// perToken is what a prompt token costs, perSequence a request that decodes, in milliseconds of
// every iteration it is part of.
func (f *refit) perToken() float64    { return float64(f.factor[2] * f.token) }
func (f *refit) perSequence() float64 { return float64(f.factor[1] * f.sequence) }

// fitted is the law, corrected.
func (f *refit) fitted() costmodel.Model {
	l := f.law
	l.C0 *= f.factor[0]
	l.KV *= f.factor[1]
	l.P1 = float64(l.P1 * f.factor[2])
	l.P2 *= f.factor[2]
	// C1 and C2 are part of both; what a prompt token costs more or less than a sequence goes to
	// P1.
	c1, c2 := float64(l.C1*f.factor[1]), float64(l.C2*f.factor[1])
	l.P1 = max(0, l.P1+float64((l.C1+l.C2)*f.factor[2])-c1-c2)
	l.C1, l.C2 = c1, c2
	return l
}
