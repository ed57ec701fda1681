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
	// waited is whether interactive requests waited though nothing but lines held them back, by the
	// last metrics.
	waited bool
}

// blocks reports whether the lines of a runner keep interactive requests waiting, in two readings
// in a row: sequences are free, requests wait, and nothing but lines runs, or they hold a quarter
// of the KV cache, or a tenth of a cache that is full. The request that is next then needs more of
// it than lines leave, and the engine starts none until a line ends, however short its iterations
// are. used and held are the shares of the cache that all requests use and that lines hold, limit
// that from which on it counts as full.
func (p *kvPressure) blocks(
	own *ownLoad, in *interactive, used, held, limit float64, slots bool,
) bool {
	before := p.waited
	p.waited = own.lines > 0 && slots && used > halfUsed && in.waiting >= 1 &&
		(in.demand-in.waiting < 0.5 || held > quarter || used > limit && held > tenth)
	return p.waited && before
}

// halfUsed is the part of the KV cache that must be in use for lines to block it: with less,
// requests wait for prompts that are being computed. quarter is the part that lines must hold if
// others run too, and tenth that of a full cache.
const halfUsed, quarter, tenth = 0.5, 0.25, 0.1

// update updates the limit from metrics. used and held are the shares of the cache that all
// requests use and that lines hold, preempted reports whether the engine preempted a request, and
// blocked whether lines keep requests waiting. mayEvict is false while evictions have wasted too
// much.
func (p *kvPressure) update(
	now time.Time, own *ownLoad, used, held float64, preempted, blocked, mayEvict bool,
	cfg Tuning,
) {
	limit := cfg.Reserve.KVUsed
	if own.lines == 0 || !(used > limit) && !preempted && !blocked {
		if now.After(p.until) {
			*p = kvPressure{waited: p.waited}
		}
		p.evict = false
		return
	}
	next := kvPressure{keep: own.lines, until: now.Add(cfg.Brake.Hold), waited: p.waited}
	if blocked { // whatever that wastes: nobody is served otherwise
		next.evict, next.keep = true, own.lines/2
		*p = next
		return
	}
	if (preempted || used > (1+limit)/2) && held > cfg.Brake.MinOwnShare {
		each := held / float64(own.lines)
		over := max(used-limit, each)
		next.evict = mayEvict
		next.keep = max(0, own.lines-int(math.Ceil(over/each)))
	}
	*p = next
}
