package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/portable"
)

// observe updates the state from an observation of a runner. It reports whether the allowance may
// have changed.
func (c *Controller) observe(
	now time.Time, m *flowcontrol.Member[*runner], o flowcontrol.Observation,
) (changed bool) {
	r := m.State
	switch o.Kind {
	case flowcontrol.Started:
		c.sizes.start(o.PromptTokens, o.OutputTokens)
		r.iterations.trickle -= portable.Rounded(c.fit.perToken() * float64(o.PromptTokens))
	case flowcontrol.Answered:
		m.Answered()
		r.staleness.observed(now)
		c.sizes.answer(o.PromptTokens, o.OutputTokens)
		c.waste.answered += float64(o.PromptTokens + o.OutputTokens)
		if o.OutputTokens > 1 && !c.recent(now, r.iterations.seenAt) &&
			!c.recent(now, r.interactive.seenAt) {
			// This is a mean over the line's time in the runner, including the time of waiting. It
			// is late, and rather too high.
			c.unstreamed(r, milliseconds(o.Latency)/float64(o.OutputTokens),
				o.Latency/time.Duration(max(1, r.own.lines)))
		}
	case flowcontrol.FirstToken, flowcontrol.TokenGaps:
		r.staleness.observed(now)
	case flowcontrol.Shed:
		m.Hold(now, o.RetryAfter)
		r.cut(now, c.lines, c.tuning)
	case flowcontrol.Broken:
		r.staleness.lineBroke(now, c.tuning.Staleness)
	case flowcontrol.Evicted:
		produced := milliseconds(o.Latency) / max(r.iterations.all.mean(), 1)
		c.waste.wasted += portable.Rounded(c.sizes.prompt*min(1, o.Latency.Seconds())) + produced
		r.own.context -= produced
	case flowcontrol.Read:
		if o.Reading.Source != flowcontrol.Metrics || !c.readMetrics(now, r, o.Reading) {
			return false
		}
		r.staleness.observed(o.Reading.Sampled)
	default:
		return false
	}
	if o.Kind != flowcontrol.Read {
		r.own.observe(now, o, &c.sizes)
	}
	if o.Kind == flowcontrol.TokenGaps {
		c.tokenGaps(now, r, float64(o.Gaps), milliseconds(o.GapTime))
	}
	r.changed = true
	return true
}

// recent reports whether the time is at most AgingAfter ago.
func (c *Controller) recent(now, at time.Time) bool {
	return !at.IsZero() && now.Sub(at) <= c.tuning.Staleness.AgingAfter
}

// readMetrics updates the state from an engine's metrics. It returns false if they show nothing
// new.
func (c *Controller) readMetrics(now time.Time, r *runner, m *flowcontrol.Reading) bool {
	s, ok := r.interactive.read(now, m, &r.own, c.engine.KVTokens)
	if !ok {
		return false
	}
	if capacity := r.interactive.capacity(c.engine.KVTokens); m.KVUsed >= 0 && capacity > 0 {
		r.kvPressure.update(now, &r.own, m.KVUsed, capacity, s.preempted,
			c.waste.allows(c.tuning.Brake), c.tuning)
	}
	if s.iteration > 0 && !c.recent(now, r.iterations.seenAt) {
		c.unstreamed(r, s.iteration, s.period)
	}
	return true
}

// unstreamed updates the state from an iteration time that was computed from a line's latency or
// from the engine's counters, not from token gaps.
func (c *Controller) unstreamed(r *runner, ms float64, period time.Duration) {
	r.iterations.unstreamed(ms, period, c.tuning.Pace)
	c.follow(r, min(period, 5*time.Second), c.tuning.Pace.GainUnstreamed)
}

// tokenGaps updates the state from n gaps between tokens, which took ms milliseconds together.
func (c *Controller) tokenGaps(now time.Time, r *runner, n, ms float64) {
	period, ok := r.iterations.gaps(now, n, ms, c.targetTime(), &r.own, &c.fit, c.tuning.Pace)
	if !ok {
		return
	}
	if m, ok := r.iterations.measured(); ok {
		c.correct(now, r, m)
	}
	c.follow(r, period, c.tuning.Pace.Gain)
}

// correct corrects the cost model by a measurement.
func (c *Controller) correct(now time.Time, r *runner, m measurement) {
	mean, tokens := m.time/m.iterations, m.prompted/m.iterations
	decoding := r.own.decoding(c.sizes.prompt)
	if in := &r.interactive; c.recent(now, in.seenAt) {
		decoding += in.running.mean
		tokens += in.promptRate.mean * mean / 1000
	}
	c.fit.add(decoding, tokens, mean)
}

// readGateway updates the levels from the gateway's counts of late interactive requests.
func (c *Controller) readGateway(now time.Time, g *flowcontrol.Reading) (changed bool) {
	if !c.outcomes.newer(g) {
		return false
	}
	if c.ownShare.mean < innocentShare {
		// Batch lines do not cause late requests while hardly any of them run.
		c.outcomes.skip(g)
		return true
	}
	if requests, late, ok := c.outcomes.ttft.since(g.TTFT); ok {
		c.promptTokens.update(now, requests, late, 1, 1)
		c.outcomes.recordLate(now, requests, late)
	}
	if requests, late, ok := c.outcomes.tpot.since(g.TPOT); ok {
		c.target.update(now, requests, late, c.lag())
	}
	c.invalidate()
	return true
}
