package headroom

import (
	"math"
	"time"
)

// peak is the greatest value within a window of time, kept in ten parts of it.
type peak struct {
	window time.Duration
	parts  [10]struct {
		from time.Time
		most float64
	}
	next int
}

func (p *peak) add(now time.Time, value float64) {
	part := &p.parts[p.next]
	if !part.from.IsZero() && now.Sub(part.from) < p.window/time.Duration(len(p.parts)) {
		part.most = max(part.most, value)
		return
	}
	p.next = (p.next + 1) % len(p.parts)
	p.parts[p.next].from, p.parts[p.next].most = now, value
}

func (p *peak) most(now time.Time) (most float64) {
	for _, part := range p.parts {
		if !part.from.IsZero() && now.Sub(part.from) <= p.window {
			most = max(most, part.most)
		}
	}
	return most
}

// spread is a mean and a variance in which older values fade with time.
type spread struct {
	mean, variance float64
	at             time.Time
}

func (s *spread) add(now time.Time, window time.Duration, value float64) {
	w := 1.0
	if !s.at.IsZero() {
		w = weight(now.Sub(s.at), window)
	}
	s.at = now
	off := value - s.mean
	s.mean += w * off
	s.variance = (1 - w) * (s.variance + w*(off*off))
}

// above returns the mean plus some standard deviations.
func (s *spread) above(deviations float64) float64 {
	return s.mean + deviations*math.Sqrt(s.variance)
}

// meanTime is the mean time of an iteration over a while. It divides the total time by the number
// of iterations: a mean of means would count the time of long iterations twice.
type meanTime struct{ iterations, time float64 }

// add adds iterations that took ms milliseconds of a period of time.
func (t *meanTime) add(window, period time.Duration, iterations, ms float64) {
	fade := 1 - weight(period, window)
	t.iterations = fade*t.iterations + iterations
	t.time = fade*t.time + ms
}

// mean is in milliseconds; 0: unknown.
func (t *meanTime) mean() float64 {
	if t.iterations <= 0 {
		return 0
	}
	return t.time / t.iterations
}

// kept returns which part of what was counted until a time still counts later; 1 if nothing was.
func kept(at, now time.Time, window time.Duration) float64 {
	if at.IsZero() {
		return 1
	}
	return 1 - weight(now.Sub(at), window)
}

// weight returns the weight of a value that covers d in a mean that looks back over window. It
// approximates 1-exp(-d/window) and is the same on every processor.
func weight(d, window time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(d) / float64(d+window)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func fromMilliseconds(ms float64) time.Duration {
	return time.Duration(ms * float64(time.Millisecond))
}
