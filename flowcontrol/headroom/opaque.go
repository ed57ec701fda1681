package headroom

import (
	"math"

	"github.com/tidefill/tidefill/flowcontrol"
)

// An opaque runner is a gateway in front of any number of engines, which nothing shows. What is
// known of one engine (its sequences, its KV cache, the cost of a line) says nothing about the
// number of lines on an opaque runner. It would hold the runner for ever at what one engine can do.
// Only the times of answers bound its lines: they grow by a tenth in a round of answers while
// answers take no longer than at best, and fall when they do.

// linesOfAnEngine is the number of lines, running without slowing answers, that count as one more
// engine of an opaque runner. Prompts may take their part of that engine's time. So many lines
// hardly slow an engine.
const linesOfAnEngine = 16

// opaque reports whether the runner is a gateway with engines that nothing shows.
func (r *runner) opaque() bool { return r.access == flowcontrol.Opaque }

// perRunner returns the greatest number of lines on a runner, by configuration. An opaque one has
// no such limit: it is for single engines.
func (c *Controller) perRunner(r *runner) float64 {
	if r.opaque() {
		return math.MaxInt32
	}
	return float64(c.cfg.PerRunner)
}

// maxPerRunner returns the highest limit of a runner of the pool.
func (c *Controller) maxPerRunner() float64 {
	most := float64(c.cfg.PerRunner)
	for _, m := range c.roster.Members {
		most = max(most, c.perRunner(m.State))
	}
	return most
}

// opaquePrompts returns the number of prompt tokens that may wait at an opaque runner. Nothing
// shows when they are computed, so all that were sent in the last seconds seem to wait. They bound
// its lines only if there are more than its engines may have.
func (c *Controller) opaquePrompts(r *runner) float64 {
	return min(c.lines*max(c.sizes.compute, 1),
		c.enginesOf(r)*c.promptTokens.value)
}

// enginesOf returns a cautious number of engines of whose time prompts may take their part.
func (c *Controller) enginesOf(r *runner) float64 {
	if !r.opaque() {
		return 1
	}
	return max(1, c.lines/linesOfAnEngine)
}
