package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// learnedShares is a distribution: the weights of its bins.
type learnedShares []float64

func (l learnedShares) valid() bool {
	return (len(l) == 0 || len(l) == shareBins) && within(0, maxFigure, l...)
}

func (s *shares) learned(now time.Time) learnedShares {
	if s.total <= 0 {
		return nil
	}
	keep, l := kept(s.at, now, shareMemory), make(learnedShares, shareBins)
	for i, weight := range s.bins {
		l[i] = keep * weight
	}
	return l
}

func (s *shares) learn(now time.Time, l learnedShares, trust float64) {
	if len(l) == 0 {
		return
	}
	s.total, s.at = 0, now
	for i, weight := range l {
		s.bins[i] = trust * weight
		s.total += s.bins[i]
	}
}

// learnedBuckets is a cumulative histogram, whose last bucket has no upper bound if there is one
// bound fewer than counts.
type learnedBuckets struct{ Upper, Count []float64 }

const maxBuckets = 500

func (l *learnedBuckets) valid() bool {
	if len(l.Count) > maxBuckets || len(l.Upper) > len(l.Count) ||
		len(l.Upper)+1 < len(l.Count) ||
		!within(0, maxFigure, l.Upper...) || !within(0, maxFigure, l.Count...) {
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
	if len(from) > maxBuckets {
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
		all = append(all, flowcontrol.Bucket{Upper: upper, Count: trust * count})
	}
	return all
}

// learnedCount counts all of something and some of it, as of Ago seconds ago.
type learnedCount struct{ All, Some, Ago float64 }

func (l *learnedCount) valid() bool { return within(0, maxFigure, l.All, l.Some, l.Ago) }

func (f *fadingShare) learned(now time.Time) learnedCount {
	return learnedCount{f.all, f.some, since(now, f.at)}
}

func (f *fadingShare) learn(now time.Time, l learnedCount, age, trust float64) {
	*f = fadingShare{all: trust * l.All,
		some: trust * min(l.Some, l.All), at: ago(now, age+l.Ago)}
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
	return l.learnedCount.valid() && within(0, maxFigure, l.Span)
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

// learnedBest is the best of something, and the time since then, in seconds.
type learnedBest struct{ Best, Ago float64 }

func (l *learnedBest) valid() bool { return within(0, maxFigure, l.Best, l.Ago) }
