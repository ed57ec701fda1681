package headroom

import (
	"math"
	"time"
)

// brake lowers the number of lines of a runner while they harm interactive requests.
type brake struct {
	since time.Time // when harm was first observed; zero: there is none now
	until time.Time // when the number of lines may grow again; zero: now
	keep  int       // maximum number of lines until then
}

// update records whether the runner's lines harm interactive requests now. mayEvict is false while
// evictions have wasted too much work.
func (b *brake) update(now time.Time, harm bool, lines int, mayEvict bool, cfg Brake) {
	if !harm {
		b.since = time.Time{}
		return
	}
	if b.since.IsZero() {
		b.since = now
	}
	if now.Sub(b.since) < cfg.After {
		return
	}
	keep := lines
	if mayEvict {
		keep -= int(math.Ceil(cfg.EvictShare * float64(lines)))
	}
	b.keep, b.until = keep, now.Add(cfg.Hold)
}

// evicts reports whether lines have to be evicted now.
func (b *brake) evicts() bool { return !b.since.IsZero() }
