package fit

import (
	"math"
	"slices"

	"github.com/tidefill/tidefill/costmodel"
)

// term is a summand of the cost model that is linear in its coefficient. The model's C1 and C2 are
// represented as the slopes below and beyond the knee, C1 and C1+C2: then the time increases with
// the tokens exactly if the coefficients are not negative. C2 itself may be negative, since kernels
// chosen by batch size can make the first tokens more expensive than the next.
type term int

const (
	perIteration     term = iota // c0
	perToken                     // c1: per token, below the knee
	perTokenBeyond               // c1+c2: per token beyond it
	perContext                   // kv
	perPrompt                    // p1
	perPromptSquared             // p2
	terms
)

var termNames = [terms]string{"c0", "c1", "c2", "kv", "p1", "p2"}

func (t term) String() string { return termNames[t] }

// noKnee is a knee that no iteration reaches.
var noKnee = math.Inf(1)

// features returns the factors of the terms, summed over the iterations of the interval.
func (o Observation) features(knee float64) [terms]float64 {
	w := o.Work
	with := 1 // iterations with chunks
	if o.Counted {
		with = max(1, min(o.Steps, w.Chunks))
	}
	rest, decoding, prefill := float64(o.Steps-with), float64(w.Decoding), float64(w.Prefill)
	tokens, knees := float64(with)*decoding+prefill, float64(with)*knee
	return [terms]float64{
		perIteration:     float64(o.Steps),
		perToken:         rest*min(decoding, knee) + min(tokens, knees),
		perTokenBeyond:   rest*max(0, decoding-knee) + max(0, tokens-knees),
		perContext:       float64(o.Steps) * w.Context,
		perPrompt:        prefill,
		perPromptSquared: prefill * (w.Before + prefill/(2*float64(max(1, w.Chunks)))),
	}
}

func slopesOf(l costmodel.Model) [terms]float64 {
	return [terms]float64{perIteration: l.C0, perToken: l.C1, perTokenBeyond: l.C1 + l.C2,
		perContext: l.KV, perPrompt: l.P1,
		perPromptSquared: l.P2}
}

// model is a linear least squares problem in the relative error: rows are divided by the observed
// time. What the held terms explain is subtracted first.
type model struct {
	terms []term
	held  costmodel.Model
	knee  float64
	rows  [][]float64 // a column for each term, then what is to be explained
}

func newModel(obs []Observation, knee float64, held costmodel.Model, active []term) *model {
	m := &model{terms: active, held: held, knee: knee, rows: make([][]float64, len(obs))}
	width := len(active) + 1
	flat := make([]float64, width*len(obs))
	for i, o := range obs {
		row := flat[i*width : (i+1)*width]
		x := o.features(knee)
		for j, t := range active {
			row[j] = x[t] / o.Time
		}
		row[len(active)] = 1 - o.Predict(held)/o.Time
		m.rows[i] = row
	}
	return m
}

// solution is a fitted model.
type solution struct {
	coefficients []float64 // by the model's terms
	weights      []float64 // of the rows; near 0: an outlier
	scale        float64   // robust standard deviation of the relative residual
	factor       *rFactor
}

const (
	// huberAt and tukeyAt are the usual constants for 95 % efficiency on normal residuals.
	huberAt = 1.345
	tukeyAt = 4.685
	// minScale keeps weights finite on data without noise.
	minScale  = 1e-7
	maxRounds = 40
	// fineTolerance and coarseTolerance are the relative changes of coefficients at which
	// reweighting ends. The coarse one is for comparing knees, whose losses differ by more.
	fineTolerance   = 1e-7
	coarseTolerance = 1e-3
	// madToDeviation converts a median absolute deviation to a standard deviation.
	madToDeviation = 1.4826
)

func huber(u float64) float64 {
	if u = math.Abs(u); u > huberAt {
		return huberAt / u
	}
	return 1
}

func tukey(u float64) float64 {
	u /= tukeyAt
	return max(0, 1-u*u) * max(0, 1-u*u)
}

func huberLoss(u float64) float64 {
	if u = math.Abs(u); u > huberAt {
		return huberAt * (u - huberAt/2)
	}
	return u * u / 2
}

// robust is an MM-like fit: Huber's convex loss, which has a single optimum, gives start and scale
// for Tukey's, which gives gross outliers (an unseen prefill, a stall) no weight.
func (m *model) robust() solution {
	s := m.reweigh(huber, m.start(), 0, fineTolerance)
	return m.reweigh(tukey, s, s.scale, fineTolerance)
}

func (m *model) start() solution {
	weights := make([]float64, len(m.rows))
	for i := range weights {
		weights[i] = 1
	}
	return solution{weights: weights, coefficients: make([]float64, len(m.terms))}
}

// reweigh is iteratively reweighted non-negative least squares. A scale of 0 is estimated in each
// round.
func (m *model) reweigh(
	weight func(float64) float64, s solution, scale, precision float64,
) solution {
	residuals := make([]float64, len(m.rows))
	s.weights = slices.Clone(s.weights)
	for range maxRounds {
		t := newRFactor(len(m.terms) + 1)
		for i, row := range m.rows {
			t.add(row, math.Sqrt(s.weights[i]))
		}
		before := s.coefficients
		s.coefficients, s.factor = t.nonNegative(), t
		m.residuals(s.coefficients, residuals)
		s.scale = scale
		if scale == 0 {
			s.scale = deviation(residuals)
		}
		for i, r := range residuals {
			s.weights[i] = weight(r / s.scale)
		}
		if relativeChange(before, s.coefficients) < precision {
			break
		}
	}
	s.scale = deviation(residuals)
	return s
}

func (m *model) residuals(coefficients, into []float64) {
	for i, row := range m.rows {
		r := row[len(coefficients)]
		for j, b := range coefficients {
			r -= b * row[j]
		}
		into[i] = r
	}
}

// loss returns Huber's loss at a given scale, by which knees are compared.
func (m *model) loss(s solution, scale float64) float64 {
	residuals := make([]float64, len(m.rows))
	m.residuals(s.coefficients, residuals)
	sum := 0.0
	for _, r := range residuals {
		sum += huberLoss(r / scale)
	}
	return sum
}

func relativeChange(before, after []float64) float64 {
	most := 0.0
	for j := range after {
		most = max(most, math.Abs(after[j]-before[j])/max(math.Abs(after[j]), math.Abs(before[j]),
			1e-300))
	}
	return most
}

// deviation returns the robust standard deviation around zero.
func deviation(residuals []float64) float64 {
	sizes := make([]float64, len(residuals))
	for i, r := range residuals {
		sizes[i] = math.Abs(r)
	}
	return max(minScale, madToDeviation*quantile(sizes, 0.5))
}

// quantile sorts its values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	at := q * float64(len(values)-1)
	i := int(at)
	if i+1 == len(values) {
		return values[i]
	}
	return values[i] + (at-float64(i))*(values[i+1]-values[i])
}

// costModel combines the fitted and the held terms.
func (m *model) costModel(coefficients []float64) costmodel.Model {
	l := m.held
	for j, t := range m.terms {
		switch b := coefficients[j]; t {
		case perIteration:
			l.C0 += b
		case perToken:
			l.C1 += b
		case perContext:
			l.KV += b
		case perPrompt:
			l.P1 += b
		case perPromptSquared:
			l.P2 += b
		case perTokenBeyond:
			l.N0 = math.Floor(m.knee)
			l.C2 += b - coefficients[slices.Index(m.terms, perToken)]
		case terms: // their number
		}
	}
	return l
}

func valueOf(l costmodel.Model, t term) float64 {
	return [terms]float64{perIteration: l.C0, perToken: l.C1, perTokenBeyond: l.C2,
		perContext: l.KV, perPrompt: l.P1,
		perPromptSquared: l.P2}[t]
}
