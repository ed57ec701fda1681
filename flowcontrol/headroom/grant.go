package headroom

import (
	"math"
	"time"

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
	fewest := c.fewest(now)
	for _, m := range c.roster.Members {
		r := m.State
		if r.changed || !r.due.IsZero() && !r.due.After(now) {
			c.grant(now, m, fewest)
		}
		c.granted = append(c.granted, r.granted)
		if !r.due.IsZero() && r.due.Before(until) {
			until = r.due
		}
	}
	a := flowcontrol.Pooled(c.granted, c.roster.PerPool)
	a.Streams, a.Until = c.cfg.Streams, until
	return a
}

// grant computes a runner's part of the allowance.
func (c *Controller) grant(now time.Time, m *flowcontrol.Member[*runner], fewest fewest) {
	r := m.State
	r.changed, r.due = false, time.Time{}
	mix := c.LineMix()
	g := flowcontrol.RunnerAllowance{Runner: m.ID, Reason: ReasonTokenTime,
		Lines: int(min(c.part(r), fewest.bound(r, mix, c.tuning.Pace)) + 0.5)}
	if mean := r.iterations.all.mean(); mean == 0 ||
		r.own.lines < g.Lines && mean < c.targetTime() {
		g.Reason = flowcontrol.ReasonLearning
	}
	lower := func(lines int, reason flowcontrol.Reason) {
		if lines < g.Lines {
			g.Lines, g.Reason = lines, reason
		}
	}
	safe, reason := r.safe(now, c.lineKV(mix), c.engine, c.cfg)
	lower(safe, reason)
	g.Lines = max(g.Lines,
		int(min(c.demanded, c.tuning.Deadlines.SafeShare*float64(safe))))
	if ceiling, reason := r.staleness.bound(now); ceiling < float64(g.Lines) {
		lower(int(ceiling), reason)
		if r.staleness.state == unreachable && now.Before(r.staleness.retry) {
			r.due = r.staleness.retry
		}
	}
	tokens, more := c.prompts(now, r)
	g.Prompt = int(math.Ceil(tokens))
	switch {
	case r.own.lines >= g.Lines || r.own.prefilling < g.Prompt:
	case tokens >= c.promptTokens.value():
		g.Reason = flowcontrol.ReasonPrompt
	default:
		g.Reason = ReasonTokenTime
		if !more.IsZero() {
			r.due = more
		}
	}
	if now.Before(r.brake.until) {
		lower(r.brake.keep, ReasonBrake)
		if r.brake.evicts() {
			g.Evict = g.Lines >= r.brake.keep
			g.Prompt = 0
			g.Reason = ReasonBrake
		}
	}
	if now.Before(r.kvPressure.until) {
		lower(r.kvPressure.keep, ReasonKV)
		g.Evict = g.Evict || r.kvPressure.evict && g.Lines >= r.kvPressure.keep
	}
	if m.Held(now) {
		g.Lines, g.Evict = 0, false
		r.due, g.Reason = m.HeldUntil()
	}
	r.granted = g
}

// prompts returns how many prompt tokens may wait on a runner when another line starts, and when
// that will be more.
func (c *Controller) prompts(now time.Time, r *runner) (tokens float64, more time.Time) {
	waiting := float64(c.tuning.Pace.MaxPrompts) * max(c.sizes.prompt, 1)
	if !c.shared { // enough for two chunks, but fewer requests than engines shed at
		return min(max(c.tuning.PromptTokens.Max, float64(2*c.engine.MaxBatchedTokens)),
			waiting/2), time.Time{}
	}
	return r.iterations.prompts(now, min(c.promptTokens.value(), waiting), c.targetTime(), &r.own,
		&c.fit, c.tuning.Pace)
}
