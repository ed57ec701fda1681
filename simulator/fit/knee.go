package fit

import (
	"math"
	"slices"

	"github.com/tidefill/tidefill/costmodel"
)

const (
	// kneeGain is the share of the loss that a knee must remove, kneeEvidence what n·log of the
	// ratio of the losses must exceed in units of log n (the Bayesian criterion requires 2 for two
	// parameters; neighboring iterations are similar, so it is twice that), and kneeSide the share
	// of intervals on either side.
	kneeGain     = 0.02
	kneeEvidence = 4
	kneeSide     = 0.05
	// knees is the number of candidates in the first scan.
	knees = 40
)

// fitKnee searches for a knee and adds it if it explains enough.
func (st *structure) fitKnee(all []Observation, prior costmodel.Model) bool {
	straight := newModel(all, noKnee, st.held, st.active)
	s := straight.robust()
	with := *st
	with.active = slices.Insert(slices.Clone(st.active), 2, perTokenBeyond)
	with.setHeld(prior)
	knee, _ := with.scan(all, kneeCandidates(all), s.scale)
	if math.IsInf(knee, 1) {
		return false
	}
	knee, loss := with.scan(all, refinedKnees(knee, kneeCandidates(all)), s.scale)
	without, n := straight.loss(straight.reweigh(huber, s, s.scale, fineTolerance), s.scale),
		float64(len(all))
	if loss > (1-kneeGain)*without || n*math.Log(without/loss) < kneeEvidence*math.Log(n) {
		return false
	}
	st.active, st.knee = with.active, knee
	return true
}

// scan tries knees and returns the best with its loss.
func (st *structure) scan(all []Observation, knees []float64, scale float64) (best, loss float64) {
	best, loss = noKnee, math.Inf(1)
	var from *solution
	for _, knee := range knees {
		m := newModel(all, knee, st.held, st.active)
		start := m.start()
		if from != nil {
			start.weights = from.weights
		}
		s := m.reweigh(huber, start, scale, coarseTolerance)
		from = &s
		if l := m.loss(s, scale); l < loss {
			best, loss = knee, l
		}
	}
	return best, loss
}

// kneeCandidates returns knees with enough intervals on either side.
func kneeCandidates(all []Observation) []float64 {
	tokens := make([]float64, len(all))
	for i, o := range all {
		tokens[i] = float64(o.Work.Decoding + o.Work.Prefill)
	}
	side := max(kneeSide, float64(minActive)/float64(len(all)))
	var found []float64
	for i := range knees {
		q := side + (1-2*side)*float64(i)/(knees-1)
		knee := math.Round(quantile(tokens, q))
		if knee > tokens[0] && knee < tokens[len(tokens)-1] && !slices.Contains(found, knee) {
			found = append(found, knee)
		}
	}
	return found
}

// refinedKnees returns up to nine knees around one, between its neighbors among the candidates.
func refinedKnees(knee float64, candidates []float64) []float64 {
	i := slices.Index(candidates, knee)
	low, high := candidates[max(0, i-1)], candidates[min(len(candidates)-1, i+1)]
	found := []float64{knee}
	for j := range 9 {
		if k := math.Round(low + (high-low)*float64(j)/8); !slices.Contains(found, k) {
			found = append(found, k)
		}
	}
	slices.Sort(found)
	return found
}

func fewestTokens(all []Observation) float64 {
	least := math.Inf(1)
	for _, o := range all {
		least = min(least, float64(o.Work.Decoding+o.Work.Prefill))
	}
	return least
}

func maxTokens(all []Observation) float64 {
	most := 0.0
	for _, o := range all {
		most = max(most, float64(o.Work.Decoding+o.Work.Prefill))
	}
	return most
}

// kneesNear adds two candidates on either side.
func kneesNear(knee float64, candidates []float64) []float64 {
	at, _ := slices.BinarySearch(candidates, knee)
	low, high := candidates[max(0, at-2)], candidates[min(len(candidates)-1, at+2)]
	return []float64{min(low, knee), knee, max(high, knee)}
}
