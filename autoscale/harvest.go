package autoscale

import (
	"slices"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// harvest measures the share of the predicted batch work that a pool achieves. Without a cost model
// the prediction is a constant, and the share is what is known of the engine.
type harvest struct {
	cfg HarvestConfig

	last      time.Time // of observe
	harvested float64   // Pool.Harvested at last
	waiting   float64   // work left at last; without a cost model that of lines not in flight
	// Decaying sums over the memory.
	achieved, predicted float64
	share               float64
	misses              misses // of the share, without a cost model
}

// The measurement without a cost model. The present rate is all that is known, so it is followed
// sooner, and from the first answers on.
const (
	measuredMemory = 5 * time.Minute
	measuredTrust  = 10 * time.Second
)

// observe compares the work done since its last call with the prediction. It skips times in which
// the replicas may have had too little work, or some have just become ready and have not answered
// any line yet.
func (h *harvest) observe(now time.Time, r replica, requests float64, left backlog) {
	p := r.pool
	known := p.Engine.CostModel.Known()
	work := left.work
	if !known {
		work = left.waiting
	}
	before, harvested, waiting := h.last, p.Harvested-h.harvested, min(work, h.waiting)
	h.last, h.harvested, h.waiting = now, p.Harvested, work
	if h.share == 0 {
		h.share = h.cfg.Share
	}
	if known {
		h.share = min(max(h.share, h.cfg.MinShare), h.cfg.MaxShare)
	}
	length := now.Sub(before)
	if before.IsZero() || length <= 0 || harvested < 0 {
		return
	}
	ready, warm := 0, 0
	for _, x := range p.Replicas {
		if x.Phase == Ready {
			ready++
			if now.Sub(x.Since) >= 2*r.lineTime() {
				warm++
			}
		}
	}
	if warm == 0 || warm < ready {
		return
	}
	rate := r.rate(requests / float64(ready))
	if rate <= 0 {
		return
	}
	rate *= float64(ready)
	if !known {
		if waiting > 0 && (h.predicted > 0 || harvested > 0) {
			h.measure(length, harvested, rate)
		}
		return
	}
	if rate*h.cfg.Busy.Seconds() > waiting {
		return
	}
	h.add(h.cfg.Memory, length, harvested, rate)
	trust := rate * h.cfg.Trust.Seconds()
	h.share = (h.achieved + trust*h.cfg.Share) / (h.predicted + trust)
	h.share = min(max(h.share, h.cfg.MinShare), h.cfg.MaxShare)
}

// add adds a time to the sums.
func (h *harvest) add(memory, length time.Duration, harvested, rate float64) {
	fade := memory.Seconds() / (memory.Seconds() + length.Seconds())
	h.achieved = h.achieved*fade + harvested
	h.predicted = h.predicted*fade + rate*length.Seconds()
}

// measure is observe without a cost model. What is assumed at first is forgotten.
func (h *harvest) measure(length time.Duration, harvested, rate float64) {
	h.misses.observe(length.Seconds(), harvested, rate*length.Seconds(), h.share)
	if h.predicted == 0 {
		h.predicted = rate * measuredTrust.Seconds()
		h.achieved = h.share * h.predicted
	}
	h.add(measuredMemory, length, harvested, rate)
	h.share = min(max(h.achieved/h.predicted, minMeasured), maxMeasured)
}

// Bounds of a measured share without a cost model: the slowest engine that gets anything done, and
// one that answers at once.
const minMeasured, maxMeasured = 1e-3, 1e4

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
	// direction, until enough errors are known. leastMiss bounds those that are known.
	firstMiss, leastMiss, maxMiss = 2.5, 1.03, 50
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
// one of ten times each is exceeded.
func (m *misses) spread(seconds float64) (long, short float64) {
	for i := len(missAhead) - 1; i >= 0; i-- {
		ratios := m.ahead[i].ratios
		if missAhead[i] > 1.5*seconds && i > 0 || len(ratios) < enoughMisses {
			continue
		}
		bound := func(factor float64) float64 {
			if seconds > 3*missAhead[i] { // what varies in short times evens out in long ones
				factor = min(factor, firstMiss)
			}
			return max(factor, leastMiss)
		}
		return bound(portable.Exp(ownMiss * quantile(ratios, 0.9))),
			bound(portable.Exp(-ownMiss * quantile(ratios, 0.1)))
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
