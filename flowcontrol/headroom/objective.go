package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/portable"
)

// mostSlowdown is how many times as long as without batch work iterations may take, whatever the
// objective says. An objective that allows more is probably a mistake, and more would harvest
// little: the work of an iteration grows with its length.
const mostSlowdown = 4

// objectiveTime returns how long iterations may take for interactive requests, in milliseconds: the
// objective, or the relative one while none is configured.
func (c *Controller) objectiveTime() float64 {
	alone := c.alone.iteration.mean()
	if alone <= 0 {
		alone = c.fit.perIteration()
	}
	if c.slo.Relative() {
		return portable.Rounded(c.slo.Slowdown * alone)
	}
	objective := milliseconds(c.slo.TPOT)
	if c.slo.TPOT == 0 { // only first tokens have an objective
		return mostSlowdown * alone
	}
	if !c.shared || c.target.fixed() || c.alone.iteration.age < packHistory.Seconds() {
		return objective
	}
	return min(objective, mostSlowdown*alone)
}

// Warnings implements flowcontrol.Warner.
func (c *Controller) Warnings(time.Time) []flowcontrol.Warning {
	if !c.shared || c.alone.iteration.age < packHistory.Seconds() {
		return nil
	}
	if w, found := c.slo.Implausible(fromMilliseconds(c.alone.iteration.mean())); found {
		return []flowcontrol.Warning{w}
	}
	return nil
}
