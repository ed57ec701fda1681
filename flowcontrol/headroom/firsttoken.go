package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// firstTokens estimates the time to first token of interactive requests without batch work, and
// from that the delay that batch work may cause.
type firstTokens struct {
	alone  shares // relative to the objective
	last   []flowcontrol.Bucket
	recent recentTimes
	// slowdown is the factor by which first tokens may be delayed, by their distribution.
	slowdown float64
	prompts  interactivePrompts
}

const (
	// fewFirstTokens are too few to show anything.
	fewFirstTokens = 20
	// usualSlowdown is the factor by which first tokens may be delayed while their time is not
	// known. It is also the factor for iterations where users need all of the KV cache.
	usualSlowdown = 1.15
	// shortestShare bounds what a distribution allows: first tokens below a tenth of the objective
	// show little about a pool with much more load.
	shortestShare = 0.1
)

// read takes over the histogram of a gateway. slowdown is the estimated factor by which first
// tokens take longer with batch work at present.
func (f *firstTokens) read(
	now time.Time, buckets []flowcontrol.Bucket, objective time.Duration, slowdown float64,
) {
	before := f.last
	f.last = buckets
	if len(before) != len(buckets) || len(before) == 0 {
		return
	}
	f.recent.add(now, before, buckets)
	f.alone.fade(now)
	scale := objective.Seconds() * slowdown
	from, counted := 0.0, 0.0
	for i, b := range buckets {
		n := b.Count - before[i].Count - counted
		if n < 0 || b.Upper != before[i].Upper {
			return // the counters have started again
		}
		to := b.Upper
		if math.IsInf(to, 1) {
			to = 2 * max(from, 1)
		}
		// Nobody knows how many in the bucket of the objective are late. They are supposed to be
		// in time, and to bear what first tokens usually do.
		if limit := objective.Seconds() / usualSlowdown; from < limit && limit < to {
			to = limit
		}
		if n > 0 {
			f.alone.spread(from/scale, to/scale, n)
		}
		counted += n
		from = b.Upper
	}
}

// allowed returns by what factor first tokens may be delayed so that no more than a share of them
// is late because of it. usual is the share with usualSlowdown while nothing is known of them.
func (f *firstTokens) allowed(share, usual float64) float64 {
	if f.alone.total < fewFirstTokens {
		return min(maxSlowdown, 1+(usualSlowdown-1)*(share/usual))
	}
	return min(maxSlowdown, 1/max(f.alone.threshold(share), shortestShare))
}

// lateBy returns which share of first tokens is expected to be late if a factor delays them.
func (f *firstTokens) lateBy(factor, usual float64) float64 {
	if f.alone.total < fewFirstTokens {
		return min(1, usual*max(0, factor-1)/(usualSlowdown-1))
	}
	return f.alone.between(1 / max(factor, 1))
}

// endangered returns which share of first tokens would be late if they took longer by a share of
// the objective. While that is not known, few are assumed to take a large part of the objective.
func (f *firstTokens) endangered(by float64) float64 {
	if f.alone.total < fewFirstTokens {
		by = min(by, 1)
		return by * by * by
	}
	return f.alone.between(1 - by)
}

// interactivePrompts estimates the mean prompt of interactive requests, in tokens to compute.
type interactivePrompts struct {
	requests      float64 // counted by the gateway at the last reading
	at            time.Time
	tokens, count spread
}

// read takes over the number of requests that a gateway has counted. rate is the number of prompt
// tokens of interactive requests that the pool's runners compute in a second.
func (p *interactivePrompts) read(now, sampled time.Time, requests, rate float64) {
	n, since := requests-p.requests, sampled.Sub(p.at)
	first := p.at.IsZero()
	p.requests, p.at = requests, sampled
	if tokens := rate * since.Seconds(); !first && n > 0 && tokens > 0 {
		p.tokens.add(now, time.Minute, tokens)
		p.count.add(now, time.Minute, n)
	}
}

// mean returns the mean prompt, or an assumed one.
func (p *interactivePrompts) mean() float64 {
	if p.count.mean <= 0 {
		return typicalContext
	}
	return p.tokens.mean / p.count.mean
}
