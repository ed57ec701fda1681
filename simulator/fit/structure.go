package fit

import (
	"fmt"
	"math"
	"slices"

	"github.com/tidefill/tidefill/costmodel"
)

const (
	// minActive is the fewest intervals in which a term must be active.
	minActive = 8
	// activeShare is the share of its largest value from which a term is active.
	activeShare = 0.1
	// suspectInflation is the variance inflation from which a term may be collinear with another
	// (textbooks say 10). The term is kept if its own effect is at least minOwnEffect of the
	// residual, since the model's misfit is about as large and would otherwise be attributed to it.
	// A term with maxInflation is never kept.
	suspectInflation = 10
	minOwnEffect     = 0.5
	maxInflation     = 1e4
)

// structure is what is decided before the coefficients: which terms are fitted, and where the knee
// is.
type structure struct {
	active    []term
	knee      float64
	held      costmodel.Model
	notes     []string
	inflation [terms]float64
}

// choose decides which terms the data can determine, whether there is a knee, and which intervals
// are fitted. If prefill can't be determined, those with a prefill chunk are left out, since they
// would separate c1 and kv wrongly.
func choose(
	all []Observation, source ContextSource, prior costmodel.Model,
) (structure, []Observation) {
	st := structure{active: []term{perIteration, perToken}, knee: noKnee}
	for _, t := range []term{perContext, perPrompt, perPromptSquared} {
		switch n := activeIntervals(all, t, noKnee); {
		case t == perContext && source == ContextMean: // each request counts the same
			st.note(
				"c1 and kv can't be distinguished, the context being a mean by request: %s, and "+
					"c1 answers for what that gets wrong. Record context_tokens",
				heldText(t, prior))
		case n >= minActive:
			st.active = append(st.active, t)
		default:
			st.note("%s can't be determined: %s; %s. %s", t, counted(n, "interval"),
				heldText(t, prior),
				howToMeasure[t])
		}
	}
	if !slices.Contains(st.active, perPrompt) {
		all = slices.DeleteFunc(slices.Clone(all), func(o Observation) bool {
			return o.Work.Prefill >= chunkInWideGap
		})
	}
	mayBend := true
	for separate := true; separate; { // each term held may uncover or hide a knee
		st.active = slices.DeleteFunc(slices.Clone(st.active), func(t term) bool {
			return t == perTokenBeyond
		})
		st.knee = noKnee
		st.setHeld(prior)
		if mayBend && st.fitKnee(all, prior) {
			st.setHeld(prior)
		}
		var worst term
		worst, separate = st.holdCollinear(all, prior)
		mayBend = mayBend && worst != perTokenBeyond
	}
	if mayBend && math.IsInf(st.knee, 1) {
		st.note(
			"c2 and n0 can't be determined: no bend shows between %.0f and %.0f tokens an "+
				"iteration; %s. %s",
			fewestTokens(all), mostTokens(all), heldText(perTokenBeyond, prior),
			howToMeasure[perTokenBeyond])
	}
	return st, all
}

// howToMeasure says which measurement determines a term.
var howToMeasure = [terms]string{
	perToken:       "Measure few and many requests at the same total of context",
	perTokenBeyond: "Measure iterations of more tokens, with the same prefill",
	perContext:     "Measure the same number of requests with short and with long contexts",
	perPrompt: "Measure prefill chunks (prefix cache off) beside few and many decoding " +
		"requests",
	perPromptSquared: "Measure prefill chunks of several sizes, and late chunks of long prompts, " +
		"with their context in prefill_context",
}

func heldText(t term, prior costmodel.Model) string {
	if prior.C0 == 0 {
		return t.String() + " is left at 0"
	}
	return fmt.Sprintf("%s keeps the prior's %.4g", t, valueOf(prior, t))
}

func counted(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun + " shows it"
	case 1:
		return "only 1 " + noun + " shows it"
	}
	return fmt.Sprintf("only %d %ss show it", n, noun)
}

func (st *structure) note(format string, args ...any) {
	st.notes = append(st.notes, fmt.Sprintf(format, args...))
}

// setHeld takes the inactive terms from the prior.
func (st *structure) setHeld(prior costmodel.Model) {
	st.held = prior
	for _, t := range st.active {
		switch t {
		case perIteration:
			st.held.C0 = 0
		case perToken:
			st.held.C1 = 0
		case perTokenBeyond:
			st.held.C2, st.held.N0 = 0, 0
		case perContext:
			st.held.KV = 0
		case perPrompt:
			st.held.P1 = 0
		case perPromptSquared:
			st.held.P2 = 0
		case terms: // their number
		}
	}
}

// activeIntervals counts the intervals in which a term is active.
func activeIntervals(all []Observation, t term, knee float64) int {
	most, n := 0.0, 0
	for _, o := range all {
		most = max(most, o.features(knee)[t])
	}
	for _, o := range all {
		if x := o.features(knee)[t]; x > 0 && x >= activeShare*most {
			n++
		}
	}
	return n
}

// holdCollinear holds one term that can't be distinguished from the others. False: there is none.
func (st *structure) holdCollinear(
	all []Observation, prior costmodel.Model,
) (held term, found bool) {
	s := newModel(all, st.knee, st.held, st.active).robust()
	st.inflation = [terms]float64{}
	for i, a := range st.active {
		st.inflation[a] = s.factor.inflation(i)
	}
	// terms with the best known priors first
	for _, a := range []term{perPromptSquared, perPrompt, perContext, perTokenBeyond} {
		i := slices.Index(st.active, a)
		if i < 0 || st.inflation[a] < suspectInflation {
			continue
		}
		own := s.coefficients[i] * s.factor.unexplained(i) / math.Sqrt(float64(len(all)))
		if st.inflation[a] < maxInflation && own >= minOwnEffect*s.scale {
			continue
		}
		twin := st.active[s.factor.mostCollinear(i)]
		st.note(
			"%s and %s can't be distinguished (variance inflation %s): %s, and %s answers for "+
				"what that gets wrong. %s",
			twin, a, times(st.inflation[a]), heldText(a, prior), twin, howToMeasure[a])
		st.active = slices.Delete(slices.Clone(st.active), i, i+1)
		return a, true
	}
	return 0, false
}

func times(inflation float64) string {
	if math.IsInf(inflation, 1) || inflation > 1e6 {
		return "beyond 1,000,000"
	}
	return fmt.Sprintf("%.0f", inflation)
}
