package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// mapArrivals changes every arrival but its time.
func mapArrivals(s Stream, change func(*Arrival)) Stream {
	return Func(func() (Arrival, bool) {
		a, ok := s.Next()
		if ok {
			change(&a)
		}
		return a, ok
	})
}

// Until ends a stream before the first arrival at or after an instant.
func Until(s Stream, end time.Duration) Stream {
	over := false
	return Func(func() (Arrival, bool) {
		if over {
			return Arrival{}, false
		}
		a, ok := s.Next()
		if over = !ok || a.At >= end; over {
			return Arrival{}, false
		}
		return a, true
	})
}

// Label sets the class of all arrivals.
func Label(s Stream, class string) Stream {
	return mapArrivals(s, func(a *Arrival) { a.Class = class })
}

// Surge is a period with Factor times the traffic.
type Surge struct {
	From   time.Duration
	Length time.Duration
	Factor float64 // at least 1
}

func (f Surge) copies() int { return int(math.Ceil(f.Factor - 1)) }

// maxFactor bounds the factor of a surge.
const maxFactor = 64

// AddSurges adds traffic to a stream. What a surge adds comes from independent streams of the same
// kind, which extra returns for the numbers 0, 1, 2 ..., so bursts within seconds are realistic and
// requests are not repeated. The last of them is thinned by rng to the factor. Overlapping surges
// add up.
func AddSurges(
	s Stream, extra func(number int) Stream, rng *rand.Rand, surges ...Surge,
) (Stream, error) {
	streams := []Stream{s}
	for _, surge := range surges {
		if surge.From < 0 || surge.Length <= 0 ||
			!(surge.Factor >= 1 && surge.Factor <= maxFactor) {
			return nil, fmt.Errorf(
				"surge of %v from %v by %v: want times from 0 on and a factor from 1 to %d",
				surge.Length, surge.From, surge.Factor, maxFactor)
		}
		n := surge.copies()
		for range n {
			keep := (surge.Factor - 1) / float64(n)
			thinning := rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))
			streams = append(streams, within(extra(len(streams)-1), surge, keep, thinning))
		}
	}
	return Merge(streams...), nil
}

// within keeps what falls into a surge, with a probability.
func within(s Stream, surge Surge, keep float64, rng *rand.Rand) Stream {
	s = Until(s, surge.From+surge.Length)
	return Func(func() (Arrival, bool) {
		for {
			a, ok := s.Next()
			if !ok || a.At >= surge.From && rng.Float64() < keep {
				return a, ok
			}
		}
	})
}

// Ramp is a value that changes linearly from Before at From to After at To, and stays there.
type Ramp struct {
	From, To      time.Duration
	Before, After float64
}

// At returns the value at t.
func (r Ramp) At(t time.Duration) float64 {
	switch {
	case t < r.From:
		return r.Before
	case t >= r.To:
		return r.After
	default:
		return interpolate(r.Before, r.After, float64(t-r.From)/float64(r.To-r.From))
	}
}

// RedrawLengths draws new lengths of requests. A length whose median is 0 is unchanged.
func RedrawLengths(s Stream, input, output Length, rng *rand.Rand) Stream {
	return mapArrivals(s, func(a *Arrival) {
		if input.Median > 0 {
			a.Input = input.draw(rng)
		}
		if output.Median > 0 {
			a.Output = output.draw(rng)
		}
	})
}

// ScalePrompts multiplies prompts by a factor that changes with time, as when conversations grow
// longer. It is the only transformation that changes a length of the source; a report should say
// so. The names of prefixes and what they cover are unchanged; apply [SharePrefixes] afterwards if
// the growth is history that an engine has cached.
func ScalePrompts(s Stream, factor Ramp) Stream {
	return mapArrivals(s, func(a *Arrival) {
		a.Input = min(max(1, int(math.Round(float64(a.Input)*factor.At(a.At)))), maxTokens)
	})
}

// SharePrefixes gives each prompt a prefix that covers a share of it, the same for all prompts of
// one of the groups (such as system prompts), which are drawn with equal probability. It replaces
// any prefix. With an engine that caches, the share is that of prompt tokens found there.
func SharePrefixes(s Stream, share float64, groups int, rng *rand.Rand) Stream {
	names := make([][]uint64, max(1, groups))
	for i := range names {
		names[i] = []uint64{rng.Uint64()}
	}
	return mapArrivals(s, func(a *Arrival) {
		a.Prefix, a.Segment = names[rng.IntN(len(names))], int(share*float64(a.Input))
		if a.Segment <= 0 {
			a.Prefix, a.Segment = nil, 0
		}
	})
}

// DropPrefixes removes the prefix of each prompt with a probability that changes with time: at 1
// nothing is found in any cache, as after a restart or a change of the system prompt.
func DropPrefixes(s Stream, cold Ramp, rng *rand.Rand) Stream {
	return mapArrivals(s, func(a *Arrival) {
		if rng.Float64() < cold.At(a.At) {
			a.Prefix, a.Segment = nil, 0
		}
	})
}

// Timing is a random process of arrival times: a Poisson process whose rate is random too.
type Timing struct {
	// Rate in requests a second, on average over the other fields.
	Rate func(time.Duration) float64
	// The rate is multiplied in each Window by an independent gamma variable with mean 1, so that
	// the variance of counts over windows is VarMean times their mean where the rate is Reference.
	// VarMean 1: by none.
	Window             time.Duration
	VarMean, Reference float64
	// Bursts multiply the rate too. Nil: there are none.
	Bursts *Bursts
}

// Retime gives the requests of a stream, in their order, the times of another process. The source's
// own times and dispersion are lost. A VarMean below 1 is not possible.
func Retime(s Stream, t Timing, rng *rand.Rand) (Stream, error) {
	if !(t.VarMean >= 1 && t.VarMean <= maxTarget) || t.Window <= 0 ||
		!(t.Reference > 0 && t.Reference <= maxRate) {
		return nil, fmt.Errorf(
			"retime to variance/mean %v over windows of %v at %v requests a second: want a target "+
				"from 1 to %g, a window and a rate above 0",
			t.VarMean, t.Window, t.Reference, float64(maxTarget))
	}
	variance := (t.VarMean - 1) / (t.Reference * t.Window.Seconds())
	pace := func() float64 { return 1 }
	if variance > 0 {
		pace = func() float64 { return gamma(rng, 1/variance) }
	}
	clock := &cox{rate: t.Rate, step: t.Window, multiplier: pace, bursts: t.Bursts, rng: rng}
	return Func(func() (Arrival, bool) {
		a, ok := s.Next()
		if ok {
			a.At, ok = clock.next()
		}
		return a, ok
	}), nil
}

const maxTarget = 1e6
