package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

const (
	// maxSlowdown is the largest factor by which the mean iteration may take longer than without
	// batch work, whatever the objective says. More would harvest little: the work of an iteration
	// grows with its length.
	maxSlowdown = 4
	// maxOfSlowest is the longest time of a token as a multiple of that in the slowest answers
	// without batch work, if that is more. An objective that allows more than both is probably a
	// mistake. Where users have long prompts, answers that meet them take several times the mean.
	maxOfSlowest = 2
	// slowest is the share of the answers that are the slowest ones.
	slowest = 0.015
)

// objectiveTime returns the limit of the time between tokens of interactive requests, in
// milliseconds: the objective, or the relative one while none is configured.
func (c *Controller) objectiveTime() float64 {
	alone := c.alone.iteration.mean()
	if alone <= 0 {
		alone = c.fit.perIteration()
	}
	if c.slo.Relative() {
		return c.slo.Slowdown * alone
	}
	objective := milliseconds(c.slo.TPOT)
	if c.slo.TPOT == 0 { // only first tokens have an objective
		return maxSlowdown * alone
	}
	if !c.shared || c.target.fixed() || c.alone.iteration.age < packHistory.Seconds() {
		return objective
	}
	return min(objective, max(maxSlowdown*alone, maxOfSlowest*c.slowAnswers()))
}

// slowAnswers returns the time of tokens of the slowest answers without batch work, in
// milliseconds; 0: not known.
func (c *Controller) slowAnswers() float64 {
	if c.answersAlone.total < fewVirtual {
		return 0
	}
	return c.answersAlone.quantile(slowest) * milliseconds(c.slo.TPOT)
}

// Warnings implements flowcontrol.Warner.
func (c *Controller) Warnings(time.Time) (all []flowcontrol.Warning) {
	if !c.shared {
		return nil
	}
	if w, found := c.implausibleTPOT(); found {
		all = append(all, w)
	}
	if w, found := c.implausibleTTFT(); found {
		all = append(all, w)
	}
	return all
}

// implausibleTTFT reports whether the objective for first tokens does not fit the pool, once it has
// been watched: prefix caches may have to fill first.
func (c *Controller) implausibleTTFT() (flowcontrol.Warning, bool) {
	if !c.watched {
		return flowcontrol.Warning{}, false
	}
	most := time.Duration(c.quiet.times.within(nearlyAll) * float64(time.Second))
	return c.slo.ImplausibleTTFT(c.quiet.usualTime(), most)
}

// implausibleTPOT reports whether the objective for tokens does not fit the engines.
func (c *Controller) implausibleTPOT() (flowcontrol.Warning, bool) {
	if c.alone.iteration.age < packHistory.Seconds() {
		return flowcontrol.Warning{}, false
	}
	alone := c.alone.iteration.mean()
	if objective := milliseconds(c.slo.TPOT); alone <= objective && c.objectiveTime() >= objective {
		return flowcontrol.Warning{}, false // the slowest answers need it
	}
	return c.slo.Implausible(fromMilliseconds(alone), fromMilliseconds(c.objectiveTime()))
}
