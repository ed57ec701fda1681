package autoscale

import (
	"slices"

	"github.com/tidefill/tidefill/internal/portable"
)

// misses measures the errors of predictions by the share, by the time that they look ahead. Times
// without work to do don't count.
type misses struct {
	seconds, done, assumed float64 // since the first observation
	ahead                  [len(missAhead)]missesAhead
}

// missesAhead has the errors of the predictions that look ahead by one of missAhead.
type missesAhead struct {
	open   []guess
	ratios []float64 // logarithms of what was done over what was predicted, the oldest first
}

// guess is a prediction whose time has not come.
type guess struct{ seconds, done, assumed, share float64 }

// missAhead are the times ahead, in seconds.
var missAhead = [...]float64{15, 60, 240, 960, 3840}

const (
	guessesAhead = 6  // predictions that are open at one time
	missesKept   = 60 // errors
	enoughMisses = 10
	// firstMiss is the factor that one of ten predictions is assumed to be wrong by, in either
	// direction, until enough errors are known. minMiss bounds those that are known.
	firstMiss, minMiss, maxMiss = 2.5, 1.03, 50.0 // not 50: 1/50 is 0
	// ownMiss is the share by which the error of one job is more than that of the whole pool, since
	// jobs come and go beside it.
	ownMiss = 2
)

// observe adds a time of some seconds. done is the work done in it, assumed that by the constant
// rate.
func (m *misses) observe(seconds, done, assumed, share float64) {
	for i, length := range missAhead {
		of := &m.ahead[i]
		if n := len(of.open); n == 0 ||
			m.seconds-of.open[n-1].seconds >= length/guessesAhead {
			of.open = append(of.open, guess{m.seconds, m.done, m.assumed, share})
		}
	}
	m.seconds, m.done, m.assumed = m.seconds+seconds, m.done+done, m.assumed+assumed
	for i, length := range missAhead {
		of := &m.ahead[i]
		for len(of.open) > 0 && m.seconds-of.open[0].seconds >= length {
			g := of.open[0]
			of.open = of.open[1:]
			ratio := (m.done - g.done) / (g.share * (m.assumed - g.assumed))
			ratio = min(max(ratio, 1/maxMiss), maxMiss)
			of.ratios = lastOf(append(of.ratios, portable.Log(ratio)), missesKept)
		}
	}
}

// spread returns by what factors the time that a prediction gives may be too long and too short:
// one of ten times each is exceeded. The known errors count times a factor.
func (m *misses) spread(seconds, times float64) (long, short float64) {
	for i := len(missAhead) - 1; i >= 0; i-- {
		ratios := m.ahead[i].ratios
		if missAhead[i] > 1.5*seconds && i > 0 || len(ratios) < enoughMisses {
			continue
		}
		bound := func(factor float64) float64 {
			if seconds > 3*missAhead[i] { // what varies in short times evens out in long ones
				factor = min(factor, firstMiss)
			}
			return max(factor, minMiss)
		}
		return bound(portable.Exp(times * quantile(ratios, 0.9))),
			bound(portable.Exp(-times * quantile(ratios, 0.1)))
	}
	return firstMiss, firstMiss
}

func (m misses) clone() misses {
	for i := range m.ahead {
		m.ahead[i].open = slices.Clone(m.ahead[i].open)
		m.ahead[i].ratios = slices.Clone(m.ahead[i].ratios)
	}
	return m
}
