package headroom

import (
	"math"
	"time"
)

// kvPressure limits a runner's lines while its KV cache is too full. No line starts. If the engine
// preempts requests or is about to, the youngest lines are evicted, because the least work is lost
// with them. A preemption by the engine loses more.
type kvPressure struct {
	keep  int // lines
	evict bool
	until time.Time
}

// update updates the limit from metrics. used is the share of the cache's capacity tokens that is
// in use, preempted reports whether the engine preempted a request. mayEvict is false while
// evictions have wasted too much.
func (p *kvPressure) update(
	now time.Time, own *ownLoad, used, capacity float64, preempted, mayEvict bool, cfg Tuning,
) {
	limit := cfg.Reserve.KVUsed
	if own.lines == 0 || !(used > limit) && !preempted {
		if now.After(p.until) {
			*p = kvPressure{}
		}
		p.evict = false
		return
	}
	next := kvPressure{keep: own.lines, until: now.Add(cfg.Brake.Hold)}
	if (preempted || used > (1+limit)/2) &&
		own.context > cfg.Brake.MinOwnShare*capacity {
		each := max(own.context/float64(own.lines), 1)
		over := max((used-limit)*capacity, each)
		next.evict = mayEvict
		next.keep = max(0, own.lines-int(math.Ceil(over/each)))
	}
	*p = next
}
