package headroom

import (
	"math"
	"time"
)

// slotPressure limits a runner's lines while all its sequences are taken and interactive requests
// wait for one. As many of the youngest lines are evicted as requests wait.
type slotPressure struct {
	keep  int // lines
	evict bool
	until time.Time
}

// update updates the limit from metrics. running and seqs are the sequences taken and in all, and
// waiting counts the interactive requests that wait. mayEvict is false while evictions have wasted
// too much.
func (p *slotPressure) update(
	now time.Time, own *ownLoad, running, seqs, waiting float64, mayEvict bool, hold time.Duration,
) {
	if own.lines == 0 || !(running >= almostAll*seqs) || !(waiting >= 1) {
		if now.After(p.until) {
			*p = slotPressure{}
		}
		p.evict = false
		return
	}
	keep := own.lines
	if mayEvict {
		keep = max(0, keep-int(math.Ceil(waiting)))
	}
	*p = slotPressure{keep: keep, evict: mayEvict, until: now.Add(hold)}
}

// almostAll is the share of the sequences from which on they count as all taken: metrics are a
// moment old.
const almostAll = 0.97
