package headroom

import (
	"time"
)

const (
	// tick is the interval at which the controller updates its estimates.
	tick = time.Second
	// carriedWindow is the time over which the number of lines on a runner is averaged.
	carriedWindow = 10 * time.Second
)

// Advance updates the estimates up to now, once a second. Observe and Allowance call it.
func (c *Controller) Advance(now time.Time) (changed bool) {
	dt := now.Sub(c.ticked)
	if len(c.roster.Members) == 0 || dt < tick {
		return false
	}
	c.ticked = now
	c.readEngines(now)
	c.checkResume(now)
	c.waste.fade(dt)
	c.checkPool(now)
	c.target.seePart(now, c.prefillPart())
	ours, all, spent := 0.0, 0.0, 0.0
	carried, unpacked := 0.0, 0.0
	for _, m := range c.roster.Members {
		r := m.State
		ours += float64(r.own.lines)
		r.carried.add(now, carriedAs, float64(r.own.lines))
		if r.packed == 0 && !r.breaksLines() {
			carried += float64(r.own.lines)
			unpacked++
		}
		all += float64(r.own.lines) + r.interactive.running.mean
		spent += c.promptTime() * (r.own.computed - r.computed)
		r.computed = r.own.computed
		r.staleness.pass(now, min(dt, 10*time.Second), c.linesByFeedback(r), c.tuning.Staleness)
		r.yield = min(1,
			r.yield*(1+c.tuning.Staleness.Recovery*dt.Seconds()))
		c.updateBrake(now, r)
		if r.own.lines > 0 && c.mayBeFull(now, r) {
			c.attribution.seeFull(now)
		}
		c.feedPrompts(r)
		c.updateBacklog(now, r)
		r.budget.pass(milliseconds(dt), c.enginesOf(r)*max(c.promptShare, minPromptShare),
			c.promptCost())
		r.changed = true
	}
	if ours > 0 {
		c.carriedAt = now
	}
	c.carried.add(now, carriedWindow, carried/max(unpacked, 1))
	c.lateLines.carry(now, carried/max(unpacked, 1))
	spentShare := spent / (milliseconds(dt) * float64(len(c.roster.Members)))
	if seqs := float64(c.engine.MaxSeqs); seqs > 0 {
		c.slots.update(seqs, c.overflow(), c.answers.mean(), c.targetTime(),
			milliseconds(c.firstObjective()))
	}
	c.kvLonger = c.longerByKV()
	c.kvWanted = c.kvDemand.threshold(c.overflow())
	c.tokens.room = c.tokens.allowed(c.objectiveTime(),
		c.tuning.TokenTimes*c.slo.Late/c.tokenForecast.error())
	c.updateTarget(now)
	c.updateAlone(now)
	c.first.slowdown = c.first.allowed(c.firstForecast.limit(), c.firstForecast.allowed)
	c.forecastLate(spentShare, dt.Seconds())
	_, byLines := c.poolSlowdown()
	wait := c.promptWait()
	c.promptsAtOnce.add(now, blameWindow, min(1000*wait, c.chunk()*c.fit.perToken()))
	c.attribution.see(now, byLines, wait)
	c.updatePromptShare()
	c.rise(now, dt)
	c.boundLines()
	c.budget.fade(now)
	c.probe(now)
	c.updatePacking(now, dt)
	c.updateCrowd(now)
	running := (all - ours) / float64(len(c.roster.Members))
	c.virtual.running.add(now, virtualWindow, running)
	c.ownShare.add(now, blameWindow, max(ours/max(all, 1), spentShare))
	return true
}

// checkPool records since when the pool's iterations are too long on average. Prompts of batch
// lines do not count, since they wait in this case.
func (c *Controller) checkPool(now time.Time) {
	sum, n := 0.0, 0.0
	for _, m := range c.roster.Members {
		r := m.State
		if it := &r.iterations; r.packed == 0 && it.base.mean() > 0 && c.recent(now, it.seenAt) {
			sum += it.base.mean()
			n++
		}
	}
	limit := c.tuning.Brake.PoolAbove * c.objectiveTime()
	if sum <= n*max(limit, c.targetTime()) {
		c.tooLong = time.Time{}
	} else if c.tooLong.IsZero() {
		c.tooLong = now
	}
}

// updateBrake applies the brake of a runner while iterations are too long in the pool and on the
// runner, and its lines cause a considerable part of the time.
func (c *Controller) updateBrake(now time.Time, r *runner) {
	if !c.shared || r.packed > 0 {
		return
	}
	ours := float64(r.own.lines) * c.fit.perSequence()
	harm := !c.tooLong.IsZero() && r.iterations.base.mean() > c.targetTime() &&
		ours > c.tuning.Brake.MinOwnShare*c.objectiveTime()
	r.brake.update(now, harm, r.own.lines, c.mayEvict(r), c.tuning.Brake)
}
