package headroom

import (
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// slotDemand is how many sequences of a runner interactive requests need.
type slotDemand struct {
	seen shares // relative to the engine's sequences; bin 1 is all of them
	// quantile is what more than a few requests have not met exceeded.
	quantile float64
	// patience is by what share of the sequences more may ask at once and be in time, because
	// those that wait get a sequence as others end.
	patience float64
}

// see adds what a runner's metrics show.
func (d *slotDemand) see(now time.Time, demand, seqs float64) {
	d.seen.fade(now)
	d.seen.add(demand/seqs, demand+0.05)
}

// update computes the quantile.
func (d *slotDemand) update(seqs, late, answer, iteration, ttft float64) {
	d.quantile = seqs * d.seen.threshold(late)
	d.patience = 0
	if life := answer * iteration; life > 0 {
		d.patience = min(1, slotPatience*ttft/life)
	}
}

// slotPatience is the share of the TTFT objective that requests may wait for a sequence.
const slotPatience = 0.25

// quantile returns the value that no more than a share of all exceeds.
func (s *shares) quantile(above float64) float64 {
	left := above * s.total
	for i := shareBins - 1; i >= 0; i-- {
		if s.bins[i] > left {
			return float64(i+1) * (shareMost / shareBins)
		}
		left -= portable.Rounded(s.bins[i])
	}
	return 0
}
