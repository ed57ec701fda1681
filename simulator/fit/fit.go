package fit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tidefill/tidefill/simulator/engine"
)

// Options of a fit.
type Options struct {
	// Prior gives the value of terms that the data can't tell. Its zero value: they are 0.
	Prior engine.Profile
	// Resamples is the number of bootstrap fits behind the coefficients' errors. Default 200.
	Resamples int
	// Seed makes the bootstrap repeatable.
	Seed uint64
}

// Origin tells where a coefficient comes from.
type Origin string

const (
	FromData  Origin = "data"
	FromPrior Origin = "prior"
	FromZero  Origin = "zero" // neither the data nor a prior tell
)

// Coefficient is one of the law's, with its uncertainty.
type Coefficient struct {
	Name   string
	Value  float64
	Origin Origin
	// Error is the standard error, Low and High the 5 and 95 % quantiles of the bootstrap. 0 unless from data.
	Error, Low, High float64
	// Inflation is the factor by which the other terms' likeness inflates the variance. 1: none is like it.
	Inflation float64
}

// Result is a fitted law.
type Result struct {
	Law          engine.Law
	Coefficients []Coefficient // c0, c1, c2, n0, kv, p1, p2
	Noise        float64       // robust standard deviation of log(measured / law) over exact iterations
	Outliers     int           // exact iterations given no weight
	Wide         int           // gaps of several steps used for the sake of their chunk
	Requests     [2]int        // least and most decoding in the exact iterations: beyond them the law extrapolates
	Error        Error         // over all exact iterations, outliers included
	Ranges       []Range       // the same by number of decoding requests
	Warnings     []string

	chosen structure
}

const (
	// leastPoints is the fewest exact iterations that bear a fit, leastCounts the fewest
	// different numbers of requests in them.
	leastPoints = 30
	leastCounts = 3
	// leastExcited is the fewest intervals in which a term must take part.
	leastExcited = 8
	// leastPart is the share of its greatest value from which a term takes part.
	leastPart = 0.1
	// likeness is the variance inflation from which a term is suspected to be another's twin; textbooks say 10.
	// It is cleared if what it alone explains is at least ownPart of the residual: the law's own
	// misfit is about as large, and would pass for the term otherwise. hopeless is never cleared.
	likeness = 10
	ownPart  = 0.5
	hopeless = 1e4
	// kneeGain is the share of the loss that a knee must take away, kneeEvidence what n·log of the ratio of the
	// losses must exceed in units of log n (the Bayesian criterion asks 2 for two parameters; neighbouring
	// iterations are alike, so it is twice that), and kneeSide the share of intervals on either side.
	kneeGain     = 0.02
	kneeEvidence = 4
	kneeSide     = 0.05
	// knees is the number of candidates scanned first.
	knees = 40
)

// structure is what is decided before coefficients are: which terms are fitted, and where the knee is.
type structure struct {
	active    []term
	knee      float64
	held      engine.Law
	notes     []string
	inflation [terms]float64
}

// Fit finds the law behind observations. Their order doesn't matter.
func Fit(obs Observations, opt Options) (Result, error) {
	all := sorted(obs.All)
	if err := bearable(all); err != nil {
		return Result{}, err
	}
	if opt.Resamples == 0 {
		opt.Resamples = 200
	}
	st, all := choose(all, obs.Context, opt.Prior.Law)
	m := newModel(all, st.knee, st.held, st.active)
	s := m.robust()
	r := Result{Law: m.law(s.coefficients), chosen: st, Warnings: st.notes}
	r.tie(opt.Prior.Law)
	if obs.Context == ContextBlocks {
		r.Warnings = append(r.Warnings, "context is counted in KV blocks in use, which is too little where requests share prefixes: "+
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
		r.Requests = [2]int{min(r.Requests[0], o.Work.Decoding), max(r.Requests[1], o.Work.Decoding)}
	}
	r.Noise = noise(exact, r.Law)
	r.Error, r.Ranges = Judge(r.Law, exact), JudgeRanges(r.Law, exact)
	r.Coefficients = coefficients(r.Law, st, opt.Prior.Law)
	if opt.Resamples > 0 {
		r.spread(all, opt)
	}
	return r, nil
}

func bearable(all []Observation) error {
	exact, counts := 0, map[int]bool{}
	for _, o := range all {
		if o.Exact() {
			exact++
			counts[o.Work.Decoding] = true
		}
	}
	switch {
	case exact < leastPoints:
		return fmt.Errorf("%d iterations with a known time can't bear a fit, at least %d are needed: record longer, or more rows with gap_steps 1", exact, leastPoints)
	case len(counts) < leastCounts:
		return fmt.Errorf("all iterations decode nearly the same number of requests (%d different numbers, at least %d are needed): record at several loads", len(counts), leastCounts)
	}
	return nil
}

// choose decides which terms the data can tell, whether there is a knee, and which intervals are fitted:
// where prefill can't be told, those with a chunk would only tell c1 from kv, and wrongly.
func choose(all []Observation, source ContextSource, prior engine.Law) (structure, []Observation) {
	st := structure{active: []term{fixed, below}, knee: noKnee}
	for _, t := range []term{context, chunk, square} {
		switch n := excited(all, t, noKnee); {
		case t == context && source == ContextMean: // each request counts the same
			st.note("c1 and kv can't be told apart, the context being a mean by request: %s, and c1 answers for what that gets wrong. Record context_tokens",
				holds(t, prior))
		case n >= leastExcited:
			st.active = append(st.active, t)
		default:
			st.note("%s can't be told: %s; %s. %s", t, counted(n, "interval"), holds(t, prior), toTell[t])
		}
	}
	if !slices.Contains(st.active, chunk) {
		all = slices.DeleteFunc(slices.Clone(all), func(o Observation) bool { return o.Work.Prefill >= chunkInWideGap })
	}
	bent := true
	for separate := true; separate; { // each term held may uncover or hide a knee
		st.active = slices.DeleteFunc(slices.Clone(st.active), func(t term) bool { return t == beyond })
		st.knee = noKnee
		st.hold(prior)
		if bent = bent && st.bend(all, prior); bent {
			st.hold(prior)
		}
		var worst term
		worst, separate = st.separate(all, prior)
		bent = bent && worst != beyond
	}
	if !bent && math.IsInf(st.knee, 1) {
		st.note("c2 and n0 can't be told: no bend shows between %.0f and %.0f tokens an iteration; %s. %s",
			least(all), most(all), holds(beyond, prior), toTell[beyond])
	}
	return st, all
}

// toTell says which measurement would tell a term.
var toTell = [terms]string{
	below:   "Measure few and many requests at the same total of context",
	beyond:  "Measure iterations of more tokens, with the same prefill",
	context: "Measure the same number of requests with short and with long contexts",
	chunk:   "Measure prefill chunks (prefix cache off) beside few and many decoding requests",
	square:  "Measure prefill chunks of several sizes, and late chunks of long prompts, with their context in prefill_context",
}

func holds(t term, prior engine.Law) string {
	if prior.C0 == 0 {
		return t.String() + " is left at 0"
	}
	return fmt.Sprintf("%s keeps the prior's %.4g", t, valueOf(prior, t))
}

func valueOf(l engine.Law, t term) float64 {
	return [terms]float64{fixed: l.C0, below: l.C1, beyond: l.C2, context: l.KV, chunk: l.P1, square: l.P2}[t]
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

// hold takes the inactive terms from the prior.
func (st *structure) hold(prior engine.Law) {
	st.held = prior
	for _, t := range st.active {
		switch t {
		case fixed:
			st.held.C0 = 0
		case below:
			st.held.C1 = 0
		case beyond:
			st.held.C2, st.held.N0 = 0, 0
		case context:
			st.held.KV = 0
		case chunk:
			st.held.P1 = 0
		case square:
			st.held.P2 = 0
		}
	}
}

// excited counts the intervals in which a term takes part.
func excited(all []Observation, t term, knee float64) int {
	most, n := 0.0, 0
	for _, o := range all {
		most = max(most, o.features(knee)[t])
	}
	for _, o := range all {
		if x := o.features(knee)[t]; x > 0 && x >= leastPart*most {
			n++
		}
	}
	return n
}

// separate holds one term that can't be told apart from the others. False: there is none.
func (st *structure) separate(all []Observation, prior engine.Law) (held term, found bool) {
	s := newModel(all, st.knee, st.held, st.active).robust()
	st.inflation = [terms]float64{}
	for i, a := range st.active {
		st.inflation[a] = s.triangle.inflation(i)
	}
	for _, a := range []term{square, chunk, context, beyond} { // what is best known beforehand goes first
		i := slices.Index(st.active, a)
		if i < 0 || st.inflation[a] < likeness {
			continue
		}
		own := s.coefficients[i] * s.triangle.left(i) / math.Sqrt(float64(len(all)))
		if st.inflation[a] < hopeless && own >= ownPart*s.scale {
			continue
		}
		twin := st.active[s.triangle.twin(i)]
		st.note("%s and %s can't be told apart (variance inflation %s): %s, and %s answers for what that gets wrong. %s",
			twin, a, times(st.inflation[a]), holds(a, prior), twin, toTell[a])
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

// bend looks for a knee and takes it if it explains enough.
func (st *structure) bend(all []Observation, prior engine.Law) bool {
	straight := newModel(all, noKnee, st.held, st.active)
	s := straight.robust()
	with := *st
	with.active = slices.Insert(slices.Clone(st.active), 2, beyond)
	with.hold(prior)
	knee, loss := with.scan(all, candidates(all), s.scale)
	if math.IsInf(knee, 1) {
		return false
	}
	knee, loss = with.scan(all, around(knee, candidates(all)), s.scale)
	without, n := straight.loss(straight.reweigh(huber, s, s.scale, exactly), s.scale), float64(len(all))
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
		s := m.reweigh(huber, start, scale, roughly)
		from = &s
		if l := m.loss(s, scale); l < loss {
			best, loss = knee, l
		}
	}
	return best, loss
}

// candidates are knees with enough intervals on either side.
func candidates(all []Observation) []float64 {
	tokens := make([]float64, len(all))
	for i, o := range all {
		tokens[i] = float64(o.Work.Decoding + o.Work.Prefill)
	}
	side := max(kneeSide, float64(leastExcited)/float64(len(all)))
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

// around are up to nine knees about one, between its neighbours among the candidates.
func around(knee float64, candidates []float64) []float64 {
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

func least(all []Observation) float64 {
	least := math.Inf(1)
	for _, o := range all {
		least = min(least, float64(o.Work.Decoding+o.Work.Prefill))
	}
	return least
}

func most(all []Observation) float64 {
	most := 0.0
	for _, o := range all {
		most = max(most, float64(o.Work.Decoding+o.Work.Prefill))
	}
	return most
}

// tie keeps what a prefill token costs in all where the data can't tell it but have bent the slope of
// which it is a part.
func (r *Result) tie(prior engine.Law) {
	if slices.Contains(r.chosen.active, chunk) || !slices.Contains(r.chosen.active, beyond) {
		return
	}
	if prior.C0 == 0 {
		if r.Law.C2 < 0 {
			r.Warnings = append(r.Warnings, "a prefill token is priced as a decoding one, which is too cheap: give a prior, or measure prefill")
		}
		return
	}
	whole := prior.C1 + prior.C2 + prior.P1
	r.Law.P1 = max(0, whole-r.Law.C1-r.Law.C2)
	r.Warnings = append(r.Warnings, fmt.Sprintf(
		"since the slope beyond the knee is new, p1 becomes %.4g instead: a prefill token costs the prior's %.4g in all", r.Law.P1, whole))
}

func coefficients(l engine.Law, st structure, prior engine.Law) []Coefficient {
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
		cs = append(cs, Coefficient{Name: t.String(), Value: valueOf(l, t), Origin: origin(t), Inflation: st.inflation[t]})
		if t == beyond {
			cs = append(cs, Coefficient{Name: "n0", Value: float64(l.N0), Origin: origin(t)})
		}
	}
	return cs
}

// spread fits resamples of the data and books how the coefficients vary. Runs are kept whole and drawn
// from in blocks, so that what lasts some seconds counts once.
func (r *Result) spread(all []Observation, opt Options) {
	rng := rand.New(rand.NewPCG(opt.Seed, 0x7469646566696c6c))
	blocks := blocksByRun(all)
	values := make([][]float64, len(r.Coefficients))
	near := []float64{r.chosen.knee}
	if slices.Contains(r.chosen.active, beyond) {
		near = around(r.chosen.knee, kneesNear(r.chosen.knee, candidates(all)))
	}
	for range opt.Resamples {
		sample := resample(blocks, rng)
		st := r.chosen
		if len(near) > 1 {
			st.knee, _ = st.scan(sample, near, max(r.Noise, leastScale))
		}
		m := newModel(sample, st.knee, st.held, st.active)
		for i, c := range coefficients(m.law(m.robust().coefficients), st, opt.Prior.Law) {
			values[i] = append(values[i], c.Value)
		}
	}
	for i := range r.Coefficients {
		c := &r.Coefficients[i]
		if c.Origin != FromData {
			continue
		}
		c.Low, c.High = quantile(values[i], 0.05), quantile(values[i], 0.95)
		c.Error = standardDeviation(values[i])
		if c.Name != "n0" && c.Name != "c2" && c.Value > 0 && c.Error > c.Value/2 {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s is hardly known: %.2g, give or take %.2g", c.Name, c.Value, c.Error))
		}
	}
}

// kneesNear widens the choice to two candidates on either side.
func kneesNear(knee float64, candidates []float64) []float64 {
	at, _ := slices.BinarySearch(candidates, knee)
	low, high := candidates[max(0, at-2)], candidates[min(len(candidates)-1, at+2)]
	return []float64{min(low, knee), knee, max(high, knee)}
}

// blockLength is the number of neighbouring intervals drawn together.
const blockLength = 10

func blocksByRun(all []Observation) [][][]Observation {
	var runs [][][]Observation
	for start := 0; start < len(all); {
		end := start
		for end < len(all) && all[end].Run == all[start].Run {
			end++
		}
		runs = append(runs, slices.Collect(slices.Chunk(all[start:end], blockLength)))
		start = end
	}
	return runs
}

func resample(runs [][][]Observation, rng *rand.Rand) []Observation {
	var sample []Observation
	for _, blocks := range runs {
		for range blocks {
			sample = append(sample, blocks[rng.IntN(len(blocks))]...)
		}
	}
	return sample
}

func standardDeviation(values []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(max(1, len(values)-1)))
}
