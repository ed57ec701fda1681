package headroom

import (
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// tick is the interval at which the controller updates its estimates.
const tick = time.Second

// Advance updates the estimates up to now, in steps of a second. Observe and Allowance call it.
func (c *Controller) Advance(now time.Time) (changed bool) {
	dt := now.Sub(c.ticked)
	if len(c.roster.Members) == 0 || dt < tick {
		return false
	}
	c.ticked = now
	c.waste.fade(dt)
	c.checkPool(now)
	c.target.seePart(now, c.prefillPart())
	ours, all, spent := 0.0, 0.0, 0.0
	for _, m := range c.roster.Members {
		r := m.State
		ours += float64(r.own.lines)
		all += float64(r.own.lines) + r.interactive.running.mean
		spent += portable.Rounded(c.fit.perToken() * (r.own.computed - r.computed))
		r.computed = r.own.computed
		r.staleness.pass(now, min(dt, 10*time.Second), c.linesByFeedback(r), c.tuning.Staleness)
		r.yield = min(1,
			r.yield*(1+portable.Rounded(c.tuning.Staleness.Recovery*dt.Seconds())))
		r.iterations.trickle = min(
			r.iterations.trickle+portable.Rounded(c.tuning.Pace.MinPromptShare*milliseconds(dt)), 1)
		c.updateBrake(now, r)
		r.changed = true
	}
	time := milliseconds(dt) * float64(len(c.roster.Members))
	c.ownShare.add(now, blameWindow, max(ours/max(all, 1), spent/time))
	return true
}

// checkPool records since when the pool's iterations are too long on average. Prompts of batch
// lines do not count, since they wait in this case.
func (c *Controller) checkPool(now time.Time) {
	sum, n := 0.0, 0.0
	for _, m := range c.roster.Members {
		if it := &m.State.iterations; it.base.mean() > 0 && c.recent(now, it.seenAt) {
			sum += it.base.mean()
			n++
		}
	}
	limit := c.tuning.Brake.PoolAbove * milliseconds(c.slo.TPOT)
	if sum <= n*max(limit, c.targetTime()) {
		c.tooLong = time.Time{}
	} else if c.tooLong.IsZero() {
		c.tooLong = now
	}
}

// updateBrake applies the brake of a runner while its lines harm interactive requests. One of two
// conditions must hold: iterations on the runner are much too long, and interactive requests wait
// or are late; or iterations are too long on average in the pool and on the runner. In both cases
// the runner's lines must cause a considerable part of the time.
func (c *Controller) updateBrake(now time.Time, r *runner) {
	if !c.shared {
		return
	}
	cfg, objective := c.tuning.Brake, milliseconds(c.slo.TPOT)
	above := cfg.Above * objective
	if budget := c.engine.MaxBatchedTokens; budget > 0 {
		longest := c.fit.perIteration() + portable.Rounded(c.fit.perToken()*float64(budget))
		above = min(above, cfg.MaxOfLongest*longest)
	}
	it, in := &r.iterations, &r.interactive
	here := it.all.mean() > above && c.recent(now, it.seenAt) &&
		(in.waiting >= 1 && c.recent(now, in.seenAt) || c.recent(now, c.outcomes.lateFirst))
	all := !c.tooLong.IsZero() && it.base.mean() > c.targetTime()
	ours := float64(r.own.lines) * c.fit.perSequence()
	harm := (here || all) && ours > cfg.MinOwnShare*objective
	r.brake.update(now, harm, r.own.lines, c.waste.allows(cfg), cfg)
}
