package headroom

import "time"

// kvAloneDeviations is the margin above the mean part that users hold, in standard deviations.
const kvAloneDeviations = 2

// seeKVAlone records the share of a runner's KV cache that users hold, as it would be without batch
// work: requests that take twice as long are twice as many at a time.
func (c *Controller) seeKVAlone(at time.Time, r *runner, held float64) {
	longer := max(1, r.iterations.all.mean()/c.timeAlone(r))
	r.kvAlone.add(at, aloneWindow, held/longer)
}

// longerByKV returns the factor by which iterations may take longer than without batch work; 0:
// nothing shows it. Users then stay longer by that factor, and still fit into the KV cache.
func (c *Controller) longerByKV() float64 {
	mean, variance, n := 0.0, 0.0, 0.0
	for _, m := range c.roster.Members {
		if r := m.State; r.packed == 0 && !r.kvAlone.at.IsZero() {
			mean += r.kvAlone.mean
			variance += r.kvAlone.variance
			n++
		}
	}
	if mean <= 0 {
		return 0
	}
	held := spread{mean: mean / n, variance: variance / n}
	return max(usualSlowdown, c.tuning.Reserve.KVUsed/held.above(kvAloneDeviations))
}
