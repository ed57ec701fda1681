package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/costmodel"
)

// unsharedTarget is the share of the TPOT objective that iterations may take in a pool without
// interactive requests. It is so high that it never limits an engine.
const unsharedTarget = 100

// targetTime returns the target of the mean iteration, in milliseconds.
func (c *Controller) targetTime() float64 {
	if !c.shared {
		return unsharedTarget * c.objectiveTime()
	}
	return c.targetTimeAt(c.target.value())
}

// targetTimeAt returns the target of the mean iteration, in milliseconds. share is the part that
// iterations may use of what is left between their time without batch work and the objective.
func (c *Controller) targetTimeAt(share float64) float64 {
	objective := c.objectiveTime()
	if c.target.fixed() {
		return share * objective
	}
	alone := c.alone.iteration.mean()
	if alone <= 0 {
		alone = c.fit.perIteration()
	}
	// The pool serves its users without batch work, so longer iterations are a mistake.
	alone = min(alone, maxAlone*objective)
	if c.slo.Relative() { // nothing shows which requests are late
		share = relativeShare
	}
	room := share * max(0, objective-alone)
	if c.kvLonger > 0 {
		room = min(room, (c.kvLonger-1)*alone)
	}
	if c.slo.TPOT == 0 {
		return alone + room
	}
	if c.alone.iteration.age >= packHistory.Seconds() {
		room = min(room, (maxSlowdown-1)*alone)
	}
	return alone + min(room, c.tokens.room)
}

// linesByRoom returns a generous number of lines for a runner, with which it uses the target time
// by the cost model.
func (c *Controller) linesByRoom() float64 {
	if !c.shared || c.target.fixed() || c.alone.iteration.mean() <= 0 {
		return math.Inf(1)
	}
	left := c.targetTime() - min(c.alone.iteration.mean(), maxAlone*c.objectiveTime())
	mix := c.LineMix()
	// Short lines wait for their prompts most of the time.
	life := max(mix.Output, 1) * c.targetTime()
	waiting := float64(c.tuning.Pace.MaxPrompts) * min(1, c.promptCost()/max(life, 1))
	return generous * (1 + waiting) * max(0, left) /
		max(c.fit.fitted().PerLine(mix), minPerLine)
}

const (
	generous = 2
	maxAlone = 0.9
	// relativeShare is the target share with a relative objective.
	relativeShare = 0.9
)

// follow changes the number of lines per runner so that iterations approach the target time, by
// what was measured on one runner over a period.
func (c *Controller) follow(r *runner, period time.Duration, gain float64) {
	if r.breaksLines() {
		return // it carries no lines, whatever c.lines is
	}
	mix, model := c.LineMix(), c.fit.fitted()
	// Lines that have just started will hold more context, which lengthens iterations.
	held := float64(r.own.lines) * mix.Context
	growth := model.KV * max(0, held-r.own.context)
	// The target is for iterations with c.lines lines. Lines that are still to start, or to end,
	// will change them, unless lines are so short that the measurement includes that already.
	life := lifeOf(mix, r.iterations.all.mean())
	growth += c.lagOf(life) * model.PerLine(mix) *
		(c.lines - float64(r.own.lines))
	off := c.targetTime() - (r.iterations.all.mean() + growth)
	// The number of long lines cannot be reduced soon. Prompts compensate for short deviations.
	gain = min(gain, c.tuning.Pace.GainPerLife/max(life, 1))
	seconds := min(period.Seconds(), 5)
	move := gain * seconds * off / max(model.PerLine(mix), minPerLine)
	c.lines += min(move, seconds*(1+c.tuning.Pace.MaxGrowth*c.lines)) /
		c.answering()
	c.boundLines()
}

// answering returns the number of runners on which lines do not break; 1 if there is none.
func (c *Controller) answering() float64 {
	n := 0.0
	for _, m := range c.roster.Members {
		if !m.State.breaksLines() {
			n++
		}
	}
	return max(n, 1)
}

// boundLines keeps the number of lines near the number in flight, since a higher number is not
// tested by measurements.
func (c *Controller) boundLines() {
	carried, n := 0.0, 0.0
	for _, m := range c.roster.Members {
		if r := m.State; r.packed == 0 && !r.breaksLines() {
			carried += float64(r.own.lines)
			n++
		}
	}
	carried /= max(1, n)
	carried /= max(c.budget.left(), 0.1) // fewer run than feedback allows
	ratio, start := c.tuning.Pace.CarriedRatio, float64(c.cfg.Start)
	c.lines = max(c.lines, carried/ratio-start, 0)
	held, _ := c.resume.heldBack(c.ticked)
	c.lines = min(c.lines, ratio*carried+start, c.maxPerRunner(),
		c.linesByRoom(), held)
}

// resized adapts the number of lines per runner after the number of runners has changed, which
// changes the interactive load of each. It uses the cost model, because feedback takes too long.
// Other changes of load are slow enough for feedback.
func (c *Controller) resized(from, to int) {
	c.invalidate()
	l, seen := c.load()
	if !seen || from == 0 || to == 0 {
		return
	}
	model, mix, target := c.fit.fitted(), c.LineMix(), c.targetTimeAt(c.target.value())
	scale := float64(from) / float64(to)
	after := costmodel.Load{Running: l.Running * scale, Context: l.Context * scale,
		PromptRate: l.PromptRate * scale, PromptMean: l.PromptMean}
	c.lines *= max(1, model.Lines(after, mix, target)) / max(1, model.Lines(l, mix, target))
	c.boundLines()
}

// load returns the mean interactive load of a runner; false if no metrics show it.
func (c *Controller) load() (l costmodel.Load, seen bool) {
	n := 0.0
	for _, m := range c.roster.Members {
		in := &m.State.interactive
		if in.seenAt.IsZero() {
			continue
		}
		n++
		of := in.load()
		l.Running += of.Running
		l.Context += of.Context
		l.PromptRate += of.PromptRate
	}
	n = max(n, 1)
	return costmodel.Load{Running: l.Running / n, Context: l.Context / n,
		PromptRate: l.PromptRate / n, PromptMean: typicalContext}, l.Running > 0
}

// linesByFeedback returns the number of lines that a runner may carry by feedback. A runner with
// longer iterations than the others starts fewer prompts, so it carries fewer lines. Its grant is
// nevertheless the same number of lines: a router that balances by load sends more interactive
// requests to a runner with fewer.
func (c *Controller) linesByFeedback(r *runner) float64 {
	return min(max(c.lines*r.yield, min(c.lines, 1)), c.perRunner(r))
}
