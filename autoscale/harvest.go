package autoscale

import (
	"time"
)

// harvest measures the share of the predicted batch work that a pool achieves.
type harvest struct {
	cfg HarvestConfig

	last      time.Time // of observe
	harvested float64   // Pool.Harvested at last
	waiting   float64   // work left at last
	// Decaying sums over HarvestConfig.Memory.
	achieved, predicted float64
	share               float64
}

// observe compares the work done since its last call with the prediction. It skips times in which
// the replicas may have had too little work, or some have just become ready and have not answered
// any line yet.
func (h *harvest) observe(now time.Time, r replica, requests, work float64) {
	p := r.pool
	before, harvested, waiting := h.last, p.Harvested-h.harvested, min(work, h.waiting)
	h.last, h.harvested, h.waiting = now, p.Harvested, work
	if h.share == 0 {
		h.share = h.cfg.Share
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
	if rate <= 0 || rate*float64(ready)*h.cfg.Busy.Seconds() > waiting {
		return
	}
	fade := h.cfg.Memory.Seconds() / (h.cfg.Memory.Seconds() + length.Seconds())
	h.achieved = h.achieved*fade + harvested
	h.predicted = h.predicted*fade +
		rate*float64(ready)*length.Seconds()
	trust := rate * float64(ready) * h.cfg.Trust.Seconds()
	h.share = (h.achieved + trust*h.cfg.Share) / (h.predicted + trust)
	h.share = min(max(h.share, h.cfg.MinShare), h.cfg.MaxShare)
}
