package autoscale

import (
	"time"
)

// harvest measures the share of the predicted batch work that a pool achieves. Without a cost model
// the prediction is a constant, and the share is what is known of the engine.
type harvest struct {
	cfg HarvestConfig

	last      time.Time // of observe
	harvested float64   // Pool.Harvested at last
	waiting   float64   // work left at last; without a cost model that of lines not in flight
	sums                // over the memory
	hour      sums      // over the configured memory, without a cost model
	share     float64
	misses    misses // of the share, without a cost model
}

// sums are those of the work done and of the work predicted, which fade over a memory.
type sums struct{ achieved, predicted float64 }

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
func (s *sums) add(memory, length time.Duration, harvested, rate float64) {
	fade := memory.Seconds() / (memory.Seconds() + length.Seconds())
	s.achieved = s.achieved*fade + harvested
	s.predicted = s.predicted*fade + rate*length.Seconds()
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
	h.hour.add(h.cfg.Memory, length, harvested, rate)
}

// hopeful returns the factor by which a pool without a cost model may do more work within a time
// than its share says, which may be wrong as it was before, or of minutes that are worse than the
// hour.
func (h *harvest) hopeful(seconds float64) float64 {
	factor, _ := h.misses.spread(seconds, 1)
	if h.hour.predicted > 0 {
		factor = max(factor, h.hour.achieved/h.hour.predicted/h.share)
	}
	return factor
}

// Bounds of a measured share without a cost model: the slowest engine that gets anything done, and
// one that answers at once.
const minMeasured, maxMeasured = 1e-3, 1e4
