package fit

import (
	"fmt"
	"math"
	"slices"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/simulator/engine"
)

// Options configure a fit.
type Options struct {
	// Prior gives the value of terms that the data can't determine. Its zero value: they are 0.
	Prior engine.Profile
	// Resamples is the number of bootstrap fits for the coefficients' errors. Default 200.
	Resamples int
	// Seed makes the bootstrap repeatable.
	Seed uint64
}

// Origin is where the value of a coefficient is from.
type Origin string

const (
	FromData  Origin = "data"
	FromPrior Origin = "prior"
	FromZero  Origin = "zero" // neither the data nor a prior determine it
)

// Coefficient is a coefficient of the cost model with its uncertainty.
type Coefficient struct {
	Name   string
	Value  float64
	Origin Origin
	// Error is the standard error, Low and High the 5 and 95 % quantiles of the bootstrap. 0 unless
	// the value is from data.
	Error, Low, High float64
	// Inflation is the factor by which collinearity with the other terms inflates the variance. 1:
	// none.
	Inflation float64
}

// Result is a fitted cost model.
type Result struct {
	CostModel    costmodel.Model
	Coefficients []Coefficient // c0, c1, c2, n0, kv, p1, p2
	// robust standard deviation of log(measured / predicted) over exact iterations
	Noise    float64
	Outliers int // exact iterations without weight
	Wide     int // gaps of several steps that were used because of their prefill chunk
	// fewest and most decoding requests in the exact iterations; beyond them the model extrapolates
	Requests [2]int
	Error    Error   // over all exact iterations, including outliers
	Ranges   []Range // the same by number of decoding requests
	Warnings []string

	structure structure
}

const (
	// minPoints is the fewest exact iterations for a fit, minCounts the fewest different numbers of
	// requests in them.
	minPoints = 30
	minCounts = 3
)

// Fit fits a cost model to observations. Their order doesn't matter.
func Fit(obs Observations, opt Options) (Result, error) {
	all := sorted(obs.All)
	if err := checkSufficient(all); err != nil {
		return Result{}, err
	}
	if opt.Resamples == 0 {
		opt.Resamples = 200
	}
	st, all := choose(all, obs.Context, opt.Prior.CostModel)
	m := newModel(all, st.knee, st.held, st.active)
	s := m.robust()
	r := Result{CostModel: m.costModel(s.coefficients), structure: st, Warnings: st.notes}
	r.tiePrefill(opt.Prior.CostModel)
	if obs.Context == ContextBlocks {
		r.Warnings = append(r.Warnings,
			"context is counted in KV blocks in use, which is too little where requests share "+
				"prefixes: "+
				"record context_tokens, or give the mean context of a decoding request")
	}
	for i, o := range all {
		switch {
		case !o.Exact():
			r.Wide++
		case s.weights[i] < 0.01:
			r.Outliers++
		}
	}
	exact := slices.DeleteFunc(sorted(obs.All), func(o Observation) bool { return !o.Exact() })
	r.Requests = [2]int{math.MaxInt, 0}
	for _, o := range exact {
		r.Requests = [2]int{min(r.Requests[0], o.Work.Decoding),
			max(r.Requests[1], o.Work.Decoding)}
	}
	r.Noise = noise(exact, r.CostModel)
	r.Error, r.Ranges = evaluate(r.CostModel, exact), evaluateRanges(r.CostModel, exact)
	r.Coefficients = coefficients(r.CostModel, st, opt.Prior.CostModel)
	if opt.Resamples > 0 {
		r.bootstrap(all, opt)
	}
	return r, nil
}

func checkSufficient(all []Observation) error {
	exact, counts := 0, map[int]bool{}
	for _, o := range all {
		if o.Exact() {
			exact++
			counts[o.Work.Decoding] = true
		}
	}
	switch {
	case exact < minPoints:
		return fmt.Errorf(
			"%d iterations with a known time can't bear a fit, at least %d are needed: record "+
				"longer, or more rows with gap_steps 1", exact, minPoints)
	case len(counts) < minCounts:
		return fmt.Errorf(
			"all iterations decode nearly the same number of requests (%d different numbers, at "+
				"least %d are needed): record at several loads", len(counts), minCounts)
	}
	return nil
}

// tiePrefill keeps the prior's total cost of a prefill token if the data can't determine it but
// have changed the slope that is a part of it.
func (r *Result) tiePrefill(prior costmodel.Model) {
	if slices.Contains(r.structure.active, perPrompt) || !slices.Contains(r.structure.active,
		perTokenBeyond) {
		return
	}
	if prior.C0 == 0 {
		if r.CostModel.C2 < 0 {
			r.Warnings = append(r.Warnings,
				"a prefill token is priced as a decoding one, which is too cheap: give a prior, "+
					"or measure prefill")
		}
		return
	}
	total := prior.C1 + prior.C2 + prior.P1
	r.CostModel.P1 = max(0, total-r.CostModel.C1-r.CostModel.C2)
	r.Warnings = append(r.Warnings, fmt.Sprintf(
		"since the slope beyond the knee is fitted, p1 becomes %.4g instead: a prefill token "+
			"costs the prior's %.4g in all", r.CostModel.P1, total))
}

func coefficients(l costmodel.Model, st structure, prior costmodel.Model) []Coefficient {
	origin := func(t term) Origin {
		switch {
		case slices.Contains(st.active, t):
			return FromData
		case prior.C0 > 0:
			return FromPrior
		}
		return FromZero
	}
	var cs []Coefficient
	for t := range terms {
		cs = append(cs, Coefficient{Name: t.String(), Value: valueOf(l, t), Origin: origin(t),
			Inflation: st.inflation[t]})
		if t == perTokenBeyond {
			cs = append(cs, Coefficient{Name: "n0", Value: l.N0, Origin: origin(t)})
		}
	}
	return cs
}
