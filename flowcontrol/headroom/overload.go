package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// overload notices that a large part of the interactive requests is late.
type overload struct {
	lately fadingShare // requests of the last seconds that were late
}

const (
	// overloadShare is that part, beyond the usual share. enoughLate is the least number of late
	// requests that show it.
	overloadShare, enoughLate = 0.1, 4
	overloadWindow            = 10 * time.Second
)

// see takes over requests, and those of them that were late.
func (o *overload) see(now time.Time, requests, late float64) {
	o.lately.add(now, overloadWindow, requests, late)
}

// now reports whether the pool is overloaded, if a share of its requests is late without batch
// work.
func (o *overload) now(usual float64) bool {
	return o.lately.some >= enoughLate && o.lately.share() > usual+overloadShare
}

// evictInOverload evicts the lines above a grant while the pool is overloaded and too many requests
// have been late, whatever that wastes. Where users need nearly all of an engine, one line can push
// it into an overload that lasts: requests that run longer hold more of the KV cache, so fewer
// prefixes stay cached, so requests run still longer.
func (c *Controller) evictInOverload(r *runner, g *flowcontrol.RunnerAllowance) {
	if g.Lines < r.own.lines && c.shared && !c.mixture.mixed() && c.budget.left() < 1 &&
		c.outcomes.overload.now(c.quiet.tpot()+c.quiet.ttft()) {
		g.Evict = true
	}
}
