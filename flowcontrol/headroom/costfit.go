package headroom

import (
	"math"

	"github.com/tidefill/tidefill/costmodel"
)

// costFit corrects an engine's cost model by measurements: the mean time of an iteration is base +
// sequence·(requests that decode) + token·(prompt tokens computed in it). It estimates the three
// coefficients by recursive least squares, as multiples of the model's, which they start at and
// stay near. Their errors are distinguished as far as the load varies; where it does not, the
// coefficients stay as the model has them.
type costFit struct {
	model                 costmodel.Model
	base, sequence, token float64 // as the model has them, in milliseconds
	maxCorrection         float64
	keep                  float64 // share of the evidence kept from one measurement to the next

	factor     [3]float64
	covariance [3][3]float64
}

const (
	typicalContext = 1000 // tokens of a request that decodes
	// coefficientError is the error of a coefficient at first, measurementError that of a
	// measurement, as shares of the model's prediction. Interactive prompts come at random times
	// and make single measurements noisy.
	coefficientError = 0.5
	measurementError = 0.3
	// longestPromise is the longest objective that a cost model is guessed from, in milliseconds.
	longestPromise = 100
)

// guessedModel returns a cost model for an engine of which only the objective of its users is
// known, in milliseconds. Operators promise about three times what an idle engine needs for an
// iteration, and engines are set up so that a full chunk takes about as long as the promise. A
// promise above longestPromise says nothing of the engine: measurements would not correct the model
// far enough.
func guessedModel(tpot float64) costmodel.Model {
	tpot = min(tpot, longestPromise)
	return costmodel.Model{C0: 0.35 * tpot, C1: tpot / 1200, KV: tpot / 1200 / 1000, P1: tpot / 800}
}

func newCostFit(model costmodel.Model, maxCorrection float64, halfLife int) costFit {
	f := costFit{
		model: model, base: model.C0,
		sequence:      model.C1 + model.KV*typicalContext,
		token:         model.PromptToken(typicalContext),
		maxCorrection: maxCorrection, keep: 1 - 0.7/float64(halfLife),
		factor: [3]float64{1, 1, 1},
	}
	for i := range 3 {
		f.covariance[i][i] = coefficientError * coefficientError
	}
	return f
}

// add corrects the coefficients by iterations that took ms milliseconds on average, with so many
// requests decoding and prompt tokens computed in each.
func (f *costFit) add(decoding, tokens, ms float64) {
	x := [3]float64{f.base, f.sequence * decoding, f.token * tokens}
	predicted := 0.0
	for i := range 3 {
		predicted += x[i] * f.factor[i]
	}
	if !(predicted > 0) {
		return
	}
	noise := measurementError * predicted
	var px [3]float64
	certainty := noise * noise
	for i := range 3 {
		for j := range 3 {
			px[i] += f.covariance[i][j] * x[j]
		}
		certainty += px[i] * x[i]
	}
	// One measurement in ten is an interactive burst that no coefficient explains; it may not move
	// them all the way.
	off := min(max(ms-predicted, -2*noise), 2*noise)
	for i := range 3 {
		gain := px[i] / certainty
		f.factor[i] = min(max(f.factor[i]+gain*off, 1/f.maxCorrection),
			f.maxCorrection)
	}
	for i := range 3 {
		for j := range 3 {
			f.covariance[i][j] -= px[i] * px[j] / certainty
		}
	}
	// Older evidence fades, but never to less than there was at first.
	for i := range 3 {
		for j := range 3 {
			if grown := f.covariance[i][j] / f.keep; i != j ||
				grown <= coefficientError*coefficientError {
				f.covariance[i][j] = grown
			}
		}
	}
	f.bound()
}

// bound keeps the covariances within what the variances permit. Under a load that never changes,
// variances reach their bound and covariances grow on; beyond it, corrections would go the wrong
// way.
func (f *costFit) bound() {
	for i := range 3 {
		for j := range i {
			most := certain * math.Sqrt(f.covariance[i][i]*f.covariance[j][j])
			bounded := min(max(f.covariance[i][j], -most), most)
			f.covariance[i][j], f.covariance[j][i] = bounded, bounded
		}
	}
}

// certain is the greatest correlation of the errors of two coefficients.
const certain = 0.999

// perIteration is the cost of an iteration without requests, in milliseconds.
func (f *costFit) perIteration() float64 { return f.factor[0] * f.base }

// perSequence is the cost of a request that decodes, in milliseconds of an iteration.
func (f *costFit) perSequence() float64 { return f.factor[1] * f.sequence }

// perToken is the cost of a prompt token, in milliseconds of its iteration.
func (f *costFit) perToken() float64 { return f.factor[2] * f.token }

// fitted returns the corrected cost model.
func (f *costFit) fitted() costmodel.Model {
	m := f.model
	m.C0 *= f.factor[0]
	m.KV *= f.factor[1]
	m.P1 = m.P1 * f.factor[2]
	m.P2 *= f.factor[2]
	// C1 and C2 are part of the cost of sequences and of prompt tokens; the difference goes to P1.
	c1, c2 := m.C1*f.factor[1], m.C2*f.factor[1]
	m.P1 = max(0, m.P1+(m.C1+m.C2)*f.factor[2]-c1-c2)
	m.C1, m.C2 = c1, c2
	return m
}
