package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// source is who counts the interactive requests that the policy judges by: a gateway, or the
// engines where there is none, or where it counts batch lines too.
type source struct {
	of        flowcontrol.Source // of the last counts: Gateway, or Metrics
	gateway   time.Time          // Sampled of the last reading of a gateway
	gatewayAt time.Time          // when it came
	// forgotten is whether what a gateway has counted with batch lines is forgotten: once only.
	forgotten bool
}

// gatewayGone is the time after a gateway's last reading from which on the engines stand in for it.
const gatewayGone = 30 * time.Second

// newer reports whether a reading of a gateway is newer than its last one, and records its time.
func (s *source) newer(now time.Time, g *flowcontrol.Reading) bool {
	if !g.Sampled.After(s.gateway) {
		return false
	}
	s.gateway, s.gatewayAt = g.Sampled, now
	return true
}

// enginesStandIn reports whether the engines' counts are used instead of those of a gateway.
func (c *Controller) enginesStandIn(now time.Time) bool {
	if c.source.gatewayAt.IsZero() || now.Sub(c.source.gatewayAt) >= gatewayGone {
		return true
	}
	shown := c.engineFirst.shownAt
	return c.mixture.mixed() && !shown.IsZero() && now.Sub(shown) < c.tuning.Staleness.StaleAfter
}

// uses reports whether counts of interactive requests are of the source to judge by, and newer than
// the last ones. Those of two sources do not continue each other.
func (c *Controller) uses(now time.Time, g *flowcontrol.Reading) bool {
	if c.enginesStandIn(now) != (g.Source == flowcontrol.Metrics) {
		return false
	}
	if g.Source != c.source.of {
		if c.source.of == flowcontrol.Gateway && c.mixture.mixed() && !c.source.forgotten {
			c.source.forgotten = true
			c.forgetOutcomes()
		}
		c.source.of, c.outcomes.at, c.outcomes.every = g.Source, time.Time{}, 0
		c.outcomes.ttft.Known, c.outcomes.tpot.Known = false, false
		c.quiet.first.seen.Known, c.quiet.each.seen.Known = false, false
		c.quiet.last, c.quiet.lastTokens = nil, nil
		c.first.last, c.first.prompts.at = nil, time.Time{}
	}
	return c.outcomes.newer(g)
}

// forgetOutcomes forgets which requests were late, the lengths of their answers, and what followed
// from that: they may have been batch lines.
func (c *Controller) forgetOutcomes() {
	late, part := c.slo.Late, c.target.part
	c.firstForecast = forecast{allowed: c.firstForecast.allowed}
	c.tokenForecast = forecast{allowed: c.tokenForecast.allowed}
	c.budget, c.lateLines = lateBudget{allowed: late}, newLateLines(late)
	c.first.alone, c.tokens = shares{}, tokenTimes{room: math.Inf(1)}
	c.virtual.real, c.virtual.realRequests, c.virtual.realLate = fadingShare{}, 0, 0
	c.target, c.promptTokens = newTargetShare(c.tuning, late), newLevel(c.tuning.PromptTokens, late)
	c.target.part = part
	c.answers, c.gatewayShowsAnswers = assumedAnswers(), false
}
