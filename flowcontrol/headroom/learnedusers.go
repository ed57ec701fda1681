package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// learnedTokenTimes is the distribution of the time between tokens.
type learnedTokenTimes struct {
	learnedBuckets
	Added float64
}

func (l *learnedTokenTimes) valid() bool {
	return l.learnedBuckets.valid() && within(0, maxFigure, l.Added)
}

func (t *tokenTimes) learned(now time.Time) learnedTokenTimes {
	var buckets []flowcontrol.Bucket
	keep, sum := kept(t.at, now, shareMemory), 0.0
	for i, edge := range t.edges {
		sum += keep * t.counts[i]
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
	Tokens      learnedBuckets
	Best        learnedBest // of first tokens; Best is usual, in seconds
	BestShare   float64
}

func (l *learnedQuiet) valid() bool {
	return l.First.valid() && l.Each.valid() && l.Times.valid() && l.Tokens.valid() &&
		l.Best.valid() &&
		within(0, 1, l.BestShare)
}

func (q *quiet) learned(now time.Time) learnedQuiet {
	l := learnedQuiet{First: q.first.share.learned(now), Each: q.each.share.learned(now),
		Times: keepBuckets(q.times), Tokens: keepBuckets(q.tokens)}
	if !q.best.at.IsZero() {
		l.Best, l.BestShare = learnedBest{q.best.usual, since(now, q.best.at)}, min(1, q.best.share)
	}
	return l
}

func (q *quiet) learn(now time.Time, l learnedQuiet, limit, age, trust float64) {
	q.first.share.learn(now, l.First, 0, trust)
	q.each.share.learn(now, l.Each, 0, trust)
	q.times, q.tokens = l.Times.buckets(trust), l.Tokens.buckets(trust)
	q.usual = q.times.usual(limit)
	if at := ago(now, age+l.Best.Ago); l.BestShare > 0 && now.Sub(at) < shareMemory {
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
