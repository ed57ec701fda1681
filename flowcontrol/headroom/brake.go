package headroom

import (
	"math"
	"time"
)

// brake evicts lines of a runner while interactive requests suffer from them.
type brake struct {
	since time.Time // when the signs appeared; zero: they are not there
	until time.Time // when the lines may grow again; zero: they may
	keep  int       // lines, until then
}

// update notes whether the signs are there now: that interactive requests suffer on the runner, and
// that its lines are a part of the reason. mayEvict is false while evictions have wasted too much.
func (b *brake) update(now time.Time, signs bool, lines int, mayEvict bool, cfg Brake) {
	if !signs {
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

// evicts reports whether lines are to be ended now.
func (b *brake) evicts() bool { return !b.since.IsZero() }
