package headroom

import "time"

// slotDemand is the number of sequences of a runner that interactive requests need.
type slotDemand struct {
	seen shares // relative to the engine's sequences; 1 is all of them
	// wanted is the demand, in sequences, that hardly any request exceeded.
	wanted float64
	// patience is the share of the sequences by which more may ask at once and be in time. Requests
	// that wait get a sequence as others end.
	patience float64
}

// see adds what a runner's metrics show.
func (d *slotDemand) see(now time.Time, demand, seqs float64) {
	d.seen.fade(now)
	d.seen.add(demand/seqs, demand+0.05)
}

// update computes what is wanted, and the patience.
func (d *slotDemand) update(seqs, late, answer, iteration, ttft float64) {
	d.wanted = seqs * d.seen.threshold(late)
	d.patience = 0
	if life := answer * iteration; life > 0 {
		d.patience = min(1, slotPatience*ttft/life)
	}
}

// slotPatience is the share of the TTFT objective that requests may wait for a sequence.
const slotPatience = 0.25
