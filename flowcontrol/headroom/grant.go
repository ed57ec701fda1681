package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
)

// Allowance implements flowcontrol.Controller.
func (c *Controller) Allowance(now time.Time) flowcontrol.Allowance {
	c.Advance(now)
	c.granted = c.granted[:0]
	var until time.Time
	if len(c.roster.Members) > 0 {
		until = c.ticked.Add(tick)
	}
	load := c.poolLoad(now)
	c.shareExtra()
	for _, m := range c.roster.Members {
		r := m.State
		if r.changed || !r.due.IsZero() && !r.due.After(now) {
			c.grant(now, m, load)
		}
		c.granted = append(c.granted, r.granted)
		if !r.due.IsZero() && r.due.Before(until) {
			until = r.due
		}
	}
	a := flowcontrol.Pooled(c.granted, c.roster.PerPool)
	a.Streams, a.Until = c.cfg.Streams.perRunner(), until
	return a
}

// grant computes the allowance of a runner. It sets due if the allowance changes at a later time
// without an observation.
func (c *Controller) grant(now time.Time, m *flowcontrol.Member[*runner], load poolLoad) {
	r := m.State
	r.changed, r.due = false, time.Time{}
	g := flowcontrol.RunnerAllowance{Runner: m.ID}
	c.grantLines(now, r, load, &g)
	c.grantPrompts(now, r, load, &g)
	r.restrict(now, &g)
	c.evictInOverload(r, &g)
	c.disperse(now, r, &g)
	if c.queues(now, r) {
		lower(&g, r.own.lines, ReasonQueue)
	}
	if m.Held(now) {
		g.Lines, g.Evict = 0, false
		r.due, g.Reason = m.HeldUntil()
	}
	r.granted = g
}

// grantLines sets the number of lines: that of the feedback, raised for deadlines, within what is
// safe for the runner.
func (c *Controller) grantLines(
	now time.Time, r *runner, load poolLoad, g *flowcontrol.RunnerAllowance,
) {
	mix := c.LineMix()
	if r.packed > 0 {
		g.Lines, g.Reason = int(r.packed), ReasonPacked
		c.grantSafe(now, r, mix, g)
		return
	}
	if !c.shared {
		c.grantToFill(r, g)
		c.grantSafe(now, r, mix, g)
		return
	}
	lines := c.linesByFeedback(r)
	g.Lines = int(min(lines+r.extra, load.bound(r, mix, c.tuning.Pace)))
	if c.watching(now) {
		g.Lines, g.Reason = 0, flowcontrol.ReasonWatching
		return
	}
	g.Reason = ReasonTokenTime
	if r.iterations.all.mean() < clearlyBelow*c.targetTime() {
		g.Reason = flowcontrol.ReasonGrowing // lines grow as they show what they cost
	}
	switch {
	case g.Lines < int(lines): // other runners carry fewer
	case lines >= c.perRunner(r):
		g.Reason = flowcontrol.ReasonRunnerLimit
	case r.yield < 1:
		g.Reason = flowcontrol.ReasonShed
	}
	byFirstTokens := int(c.linesByFirstTokens(r))
	if byFirstTokens == 0 && r == c.roster.Members[0].State && c.idlesWithoutUsers(now) {
		byFirstTokens = 1 // shows what a line costs
	}
	lower(g, byFirstTokens, ReasonFirstToken)
	c.grantSafe(now, r, mix, g)
}

// clearlyBelow is the part of the target time below which iterations do not limit the lines.
const clearlyBelow = 0.9

// grantSafe lowers the lines to what the runner can hold, and raises them for deadlines up to a
// share of that.
func (c *Controller) grantSafe(
	now time.Time, r *runner, mix costmodel.Mix, g *flowcontrol.RunnerAllowance,
) {
	safe, reason := c.safeLines(now, r, mix)
	lower(g, safe, reason)
	c.economize(now, r, g)
	g.Lines = max(g.Lines, int(min(c.demanded,
		c.tuning.Deadlines.SafeShare*float64(min(safe, c.cfg.PerRunner)))))
	if ceiling, reason := r.staleness.bound(now); ceiling < float64(g.Lines) {
		lower(g, int(ceiling), reason)
		if r.staleness.state == unreachable && now.Before(r.staleness.retry) {
			r.due = r.staleness.retry
		}
	}
}

// grantPrompts sets the number of prompt tokens. It replaces the reason if prompts, not the number
// of lines, prevent the next start.
func (c *Controller) grantPrompts(
	now time.Time, r *runner, load poolLoad, g *flowcontrol.RunnerAllowance,
) {
	tokens, more := c.prompts(now, r)
	if r.opaque() {
		tokens = max(tokens, c.opaquePrompts(r))
	}
	g.Prompt = int(math.Ceil(tokens))
	if r.packed == 0 && c.limitsPrompts() && r.budget <= 0 {
		g.Prompt, tokens, more = 0, 0, time.Time{}
	}
	if c.shared && !c.target.fixed() && load.fallsBehind(r, c.tuning.Pace) {
		g.Prompt = max(g.Prompt, 1)
	}
	if r.own.lines >= g.Lines || r.own.prefilling < g.Prompt {
		return
	}
	r.feed.short = true
	if !c.shared || r.packed > 0 {
		g.Reason, r.due = flowcontrol.ReasonPrompt, more
		return
	}
	if tokens >= c.promptTokens.value {
		g.Reason = flowcontrol.ReasonPrompt
		return
	}
	g.Reason = ReasonTokenTime
	if !more.IsZero() {
		r.due = more
	}
}

// restrict lowers the allowance, and evicts lines, while the brake or a lack of KV cache or
// sequences require it. No more are evicted than that, also if fewer may start.
func (r *runner) restrict(now time.Time, g *flowcontrol.RunnerAllowance) {
	keep, reason := r.own.lines, flowcontrol.ReasonNone
	for _, by := range []struct {
		until  time.Time
		keep   int
		evict  bool
		reason flowcontrol.Reason
	}{
		{r.brake.until, r.brake.keep, r.brake.evicts(), ReasonBrake},
		{r.kvPressure.until, r.kvPressure.keep, r.kvPressure.evict, ReasonKV},
		{r.slotPressure.until, r.slotPressure.keep, r.slotPressure.evict, ReasonSlots},
	} {
		if !now.Before(by.until) {
			continue
		}
		lower(g, by.keep, by.reason)
		if by.evict && by.keep < keep {
			keep, reason = by.keep, by.reason
		}
	}
	if now.Before(r.brake.until) && r.brake.evicts() {
		g.Prompt, g.Reason = 0, ReasonBrake
	}
	if keep < r.own.lines {
		g.Lines, g.Evict, g.Reason = keep, true, reason
	}
}

// lower reduces the number of lines for a reason; a number that is already lower remains.
func lower(g *flowcontrol.RunnerAllowance, lines int, reason flowcontrol.Reason) {
	if lines < g.Lines {
		g.Lines, g.Reason = lines, reason
	}
}

// prompts returns the number of prompt tokens waiting on a runner below which another line may
// start, and when that number grows; zero: not with time alone.
func (c *Controller) prompts(now time.Time, r *runner) (tokens float64, more time.Time) {
	waiting := float64(c.tuning.Pace.MaxPrompts) * max(c.sizes.compute, 1)
	if !c.shared || r.packed > 0 {
		return c.promptsOfFeed(now, r)
	}
	if c.promptsAreFree() {
		return c.promptTokens.value, time.Time{}
	}
	chunk := 0.0
	if c.first.alone.total >= fewFirstTokens { // it shows what prompts do to first tokens
		chunk = float64(c.engine.MaxBatchedTokens)
	}
	unseen := 0.0
	if !c.blind() {
		unseen = r.computedUnseen()
	}
	return r.iterations.prompts(now, min(c.promptTokens.value, waiting), unseen,
		c.promptTarget(), chunk, &r.own, &c.fit, c.tuning.Pace)
}

// shareExtra rounds the lines of runners so that their sum is about right: the first runners by ID
// carry one more than the others.
func (c *Controller) shareExtra() {
	n := len(c.roster.Members)
	more := int((c.lines-math.Floor(c.lines))*float64(n) + 0.5)
	for i, m := range c.roster.Members {
		extra := 0.0
		if i < more {
			extra = 1 - (c.lines - math.Floor(c.lines))
		}
		if m.State.extra != extra {
			m.State.extra, m.State.changed = extra, true
		}
	}
}
