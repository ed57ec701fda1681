package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/portable"
)

// The parts of learned. Each has a method valid, because a state may be damaged: what is out of
// range must not become a figure that is no number. The functions learn take a part over; what
// counts less with its age is multiplied by trust, from 0 to 1.

// longestAge bounds ages, so that they can be subtracted from times.
const longestAge = 10 * 365 * 24 * time.Hour

// mostFigure bounds figures that have no other bound.
const mostFigure = 1e12

// within reports whether all values are numbers between two bounds.
func within(least, most float64, values ...float64) bool {
	for _, v := range values {
		if !(v >= least && v <= most) {
			return false
		}
	}
	return true
}

// ago returns the time that was some seconds before another.
func ago(now time.Time, seconds float64) time.Time {
	return now.Add(-time.Duration(min(seconds, longestAge.Seconds()) * float64(time.Second)))
}

func (l *learned) valid() bool {
	return within(0, mostFigure, l.Lines, l.Known, l.Alone, l.AloneAge) &&
		l.Fit.valid() && l.Sizes.valid() && l.AloneShares.valid() && l.AnswerTime.valid() &&
		l.TokenTime.valid() && l.PromptTime.valid() && l.Quiet.valid() && l.Virtual.valid() &&
		l.FirstForecast.valid() && l.TokenForecast.valid() && l.Budget.valid() &&
		l.First.valid() && l.Prompt.valid() && l.TokenTimes.valid() && l.validAnswers() &&
		l.Slots.valid() && l.KV.valid() && l.Prefill.valid() && l.Decode.valid() &&
		l.Prompts.valid() && l.Waste.valid() && l.Packing.valid()
}

func (l *learned) validAnswers() bool {
	return (len(l.Answers) == 0 || len(l.Answers) == virtualLengths) &&
		(len(l.FineAnswers) == 0 || len(l.FineAnswers) == fineLengths) &&
		within(1, 1e7, l.Answers...) && within(1, 1e7, l.FineAnswers...)
}

// learnedFit are the corrections of the cost model.
type learnedFit struct {
	Factor     [3]float64    `json:"factor"`
	Covariance [3][3]float64 `json:"covariance"`
}

func (l *learnedFit) valid() bool {
	for i := range 3 {
		if !within(-1, 1, l.Covariance[i][:]...) || l.Covariance[i][i] < 0 {
			return false
		}
	}
	return within(0, mostFigure, l.Factor[:]...)
}

func (f *costFit) learn(l learnedFit, trust float64) {
	if l.Factor == ([3]float64{}) {
		return
	}
	correlated := positive(l.Covariance)
	for i := range 3 {
		factor := min(max(l.Factor[i], 1/f.maxCorrection), f.maxCorrection)
		f.factor[i] = 1 + portable.Rounded(trust*(factor-1))
		for j := range 3 {
			if i == j || correlated {
				f.covariance[i][j] += portable.Rounded(trust * (l.Covariance[i][j] -
					f.covariance[i][j]))
			}
		}
	}
}

// positive reports whether a symmetric matrix is positive definite, as a covariance is.
func positive(m [3][3]float64) bool {
	for i := range 3 {
		for j := range i {
			if m[i][j] != m[j][i] {
				return false
			}
		}
	}
	minor := portable.Rounded(m[0][0]*m[1][1]) - portable.Rounded(m[0][1]*m[0][1])
	a := portable.Rounded(m[1][1]*m[2][2]) - portable.Rounded(m[1][2]*m[1][2])
	b := portable.Rounded(m[0][1]*m[2][2]) - portable.Rounded(m[1][2]*m[0][2])
	c := portable.Rounded(m[0][1]*m[1][2]) - portable.Rounded(m[1][1]*m[0][2])
	whole := portable.Rounded(m[0][0]*a) - portable.Rounded(m[0][1]*b) +
		portable.Rounded(m[0][2]*c)
	return m[0][0] > 0 && minor > 0 && whole > 0
}

// learnedSizes are the sizes of batch lines.
type learnedSizes struct {
	Prompt, Output, Compute, Expected, LatestPrompt, LatestOutput, LatestLong, Context,
	Square float64
	Started, Seen, Answers int
}

func (l *learnedSizes) valid() bool {
	return within(0, mostFigure, l.Prompt, l.Output, l.Compute, l.Expected, l.LatestPrompt,
		l.LatestOutput, l.LatestLong, l.Context) && within(0, mostFigure*mostFigure, l.Square) &&
		within(0, mostFigure, float64(l.Started), float64(l.Seen), float64(l.Answers))
}

func (s *lineSizes) learned() learnedSizes {
	return learnedSizes{s.prompt, s.output, s.compute, s.expected, s.latestPrompt, s.latestOutput,
		s.latestLong, s.context, s.square, s.started, s.seen, s.answers}
}

func (s *lineSizes) learn(l learnedSizes, trust float64) {
	few := func(n int) int { return int(trust * float64(n)) }
	started, seen := min(few(l.Started), sizesWindow), min(few(l.Seen), sizesWindow)
	if started == 0 || seen == 0 || l.Prompt < 1 || l.Output < 1 || l.Compute < 1 {
		return
	}
	*s = lineSizes{l.Prompt, l.Output, l.Compute, l.Expected, l.LatestPrompt, l.LatestOutput,
		l.LatestLong, l.Context, l.Square, started, seen, few(l.Answers)}
}

// learnedShares is a distribution: the weights of its bins.
type learnedShares []float64

func (l learnedShares) valid() bool {
	return (len(l) == 0 || len(l) == shareBins) && within(0, mostFigure, l...)
}

func (s *shares) learned(now time.Time) learnedShares {
	if s.total <= 0 {
		return nil
	}
	keep, l := kept(s.at, now, shareMemory), make(learnedShares, shareBins)
	for i, weight := range s.bins {
		l[i] = portable.Rounded(keep * weight)
	}
	return l
}

func (s *shares) learn(now time.Time, l learnedShares, trust float64) {
	if len(l) == 0 {
		return
	}
	s.total, s.at = 0, now
	for i, weight := range l {
		s.bins[i] = portable.Rounded(trust * weight)
		s.total += s.bins[i]
	}
}

// learnedBuckets is a cumulative histogram, whose last bucket has no upper bound if there is one
// bound fewer than counts.
type learnedBuckets struct{ Upper, Count []float64 }

const mostBuckets = 500

func (l *learnedBuckets) valid() bool {
	if len(l.Count) > mostBuckets || len(l.Upper) > len(l.Count) ||
		len(l.Upper)+1 < len(l.Count) ||
		!within(0, mostFigure, l.Upper...) || !within(0, mostFigure, l.Count...) {
		return false
	}
	for i := 1; i < len(l.Count); i++ {
		if l.Count[i] < l.Count[i-1] || i < len(l.Upper) && l.Upper[i] <= l.Upper[i-1] {
			return false
		}
	}
	return true
}

func keepBuckets(from []flowcontrol.Bucket) (l learnedBuckets) {
	if len(from) > mostBuckets {
		return l
	}
	for _, b := range from {
		if !math.IsInf(b.Upper, 1) {
			l.Upper = append(l.Upper, b.Upper)
		}
		l.Count = append(l.Count, b.Count)
	}
	return l
}

func (l *learnedBuckets) buckets(trust float64) (all []flowcontrol.Bucket) {
	for i, count := range l.Count {
		upper := math.Inf(1)
		if i < len(l.Upper) {
			upper = l.Upper[i]
		}
		all = append(all, flowcontrol.Bucket{Upper: upper, Count: portable.Rounded(trust * count)})
	}
	return all
}

// learnedCount counts all of something and some of it, as of Ago seconds ago.
type learnedCount struct{ All, Some, Ago float64 }

func (l *learnedCount) valid() bool { return within(0, mostFigure, l.All, l.Some, l.Ago) }

func (f *fadingShare) learned(now time.Time) learnedCount {
	return learnedCount{f.all, f.some, since(now, f.at)}
}

func (f *fadingShare) learn(now time.Time, l learnedCount, age, trust float64) {
	*f = fadingShare{all: portable.Rounded(trust * l.All),
		some: portable.Rounded(trust * min(l.Some, l.All)), at: ago(now, age+l.Ago)}
}

func (f *forecast) learned(now time.Time) learnedCount {
	return learnedCount{f.expected, f.late, since(now, f.at)}
}

func (f *forecast) learn(now time.Time, l learnedCount, age float64) {
	f.expected, f.late, f.at = l.All, l.Some, ago(now, age+l.Ago)
}

// learnedBudget are requests, and late ones among them, that were counted over Span seconds.
type learnedBudget struct {
	learnedCount
	Span float64
}

func (l *learnedBudget) valid() bool {
	return l.learnedCount.valid() && within(0, mostFigure, l.Span)
}

func (b *lateBudget) learned(now time.Time) learnedBudget {
	return learnedBudget{learnedCount{b.requests, b.late, since(now, b.at)},
		max(0, b.at.Sub(b.began).Seconds())}
}

func (b *lateBudget) learn(now time.Time, l learnedBudget, age float64) {
	if l.All <= 0 {
		return
	}
	at := ago(now, age+l.Ago)
	b.requests, b.late, b.at, b.began = l.All, l.Some, at, ago(at, l.Span)
}

// learnedBest is the best of something, in milliseconds, and how long ago it was.
type learnedBest struct{ Best, Ago float64 }

func (l *learnedBest) valid() bool { return within(0, mostFigure, l.Best, l.Ago) }

// learnedTokenTimes is the distribution of the time between tokens.
type learnedTokenTimes struct {
	learnedBuckets
	Added float64
}

func (l *learnedTokenTimes) valid() bool {
	return l.learnedBuckets.valid() && within(0, mostFigure, l.Added)
}

func (t *tokenTimes) learned(now time.Time) learnedTokenTimes {
	var buckets []flowcontrol.Bucket
	keep, sum := kept(t.at, now, shareMemory), 0.0
	for i, edge := range t.edges {
		sum += portable.Rounded(keep * t.counts[i])
		buckets = append(buckets, flowcontrol.Bucket{Upper: edge, Count: sum})
	}
	return learnedTokenTimes{keepBuckets(buckets), t.added.mean}
}

func (t *tokenTimes) learn(now time.Time, l learnedTokenTimes, trust float64) {
	buckets := l.buckets(trust)
	if len(buckets) == 0 {
		return
	}
	t.edges, t.counts = make([]float64, len(buckets)), make([]float64, len(buckets))
	t.total, t.at = 0, now
	t.added = spread{mean: l.Added, at: now}
	for i, b := range buckets {
		t.edges[i], t.counts[i] = b.Upper, b.Count-t.total
		t.total = b.Count
	}
}

// learnedQuiet is what times without batch lines showed.
type learnedQuiet struct {
	First, Each learnedCount
	Times       learnedBuckets
	Best        learnedBest // of first tokens; Best is usual, in seconds
	BestShare   float64
}

func (l *learnedQuiet) valid() bool {
	return l.First.valid() && l.Each.valid() && l.Times.valid() && l.Best.valid() &&
		within(0, 1, l.BestShare)
}

func (q *quiet) learned(now time.Time) learnedQuiet {
	l := learnedQuiet{First: q.first.share.learned(now), Each: q.each.share.learned(now),
		Times: keepBuckets(q.times)}
	if !q.best.at.IsZero() {
		l.Best, l.BestShare = learnedBest{q.best.usual, since(now, q.best.at)}, min(1, q.best.share)
	}
	return l
}

func (q *quiet) learn(now time.Time, l learnedQuiet, limit, age, trust float64) {
	q.first.share.learn(now, l.First, 0, trust)
	q.each.share.learn(now, l.Each, 0, trust)
	q.times = l.Times.buckets(trust)
	q.usual = q.times.usual(limit)
	if at := ago(now, age+l.Best.Ago); l.Best.Best > 0 && now.Sub(at) < shareMemory {
		q.best.usual, q.best.share, q.best.at = l.Best.Best, l.BestShare, at
	}
}

// learnedVirtual are shares of virtual and of real requests that were late.
type learnedVirtual struct{ Quiet, Late, Real learnedCount }

func (l *learnedVirtual) valid() bool {
	return l.Quiet.valid() && l.Late.valid() && l.Real.valid()
}

func (o *virtualOutcomes) learned(now time.Time) learnedVirtual {
	return learnedVirtual{o.quiet.learned(now), o.lateShare.learned(now), o.real.learned(now)}
}

func (o *virtualOutcomes) learn(now time.Time, l learnedVirtual, age, trust float64) {
	o.quiet.learn(now, l.Quiet, 0, trust)
	o.lateShare.learn(now, l.Late, age, 1)
	o.real.learn(now, l.Real, age, 1)
}

// learnedLevel is the value of a level.
type learnedLevel struct{ Value, Owed, Rate float64 }

func (l *learnedLevel) valid() bool {
	return within(0, mostFigure, l.Value, l.Rate) && within(-1, 1, l.Owed)
}

func (l *level) learned() learnedLevel { return learnedLevel{l.value, l.owed, l.rate} }

func (l *level) learn(of learnedLevel, trust float64) {
	if l.fixed || of.Value <= 0 {
		return
	}
	value := l.cfg.Start + portable.Rounded(trust*(of.Value-l.cfg.Start))
	l.value = min(max(value, l.cfg.Min), l.cfg.Max)
	l.owed, l.rate = portable.Rounded(trust*min(0, of.Owed)), of.Rate
}

// learnedPacking is how many runners are packed and how many lines each of them carries at most,
// and the seconds for which packing is paused after it has failed.
type learnedPacking struct {
	Runners            int
	Lines, Pause, Left float64
}

func (l *learnedPacking) valid() bool {
	return within(0, mostFigure, float64(l.Runners), l.Lines, l.Pause, l.Left)
}

func (c *Controller) learnedPacking(now time.Time) learnedPacking {
	p := &c.packing
	l := learnedPacking{Pause: p.pause.Seconds(), Left: max(0, p.until.Sub(now).Seconds())}
	for _, m := range c.roster.Members {
		if r := m.State; r.packed > 0 {
			l.Runners++
			l.Lines = max(l.Lines, min(r.packed, float64(r.own.lines)))
		}
	}
	return l
}
