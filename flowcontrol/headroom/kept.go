package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// keptFirst returns the longest time to first token where no objective is configured. It is the
// time in which nearly all first tokens come without batch work, times the slowdown. Requests that
// take longer count as late: a mean that is kept says nothing of the slowest. It is an edge of the
// histogram, at which counts are exact. 0: there is an objective, or too few requests were seen
// without batch work.
func (c *Controller) keptFirst() time.Duration {
	return time.Duration(c.keptTime(c.quiet.times) * float64(time.Second))
}

// keptTokens returns the same for the mean time between the tokens of an answer, in seconds.
func (c *Controller) keptTokens() float64 { return c.keptTime(c.quiet.tokens) }

// longestToken returns the longest mean time between the tokens of an answer that is in time, in
// milliseconds.
func (c *Controller) longestToken() float64 {
	if c.slo.Relative() {
		return 1000 * c.kept
	}
	return milliseconds(c.slo.TPOT)
}

func (c *Controller) keptTime(alone firstTokenTimes) float64 {
	if !c.slo.Relative() {
		return 0
	}
	longest := c.slo.Slowdown * alone.quantile(nearlyAll, 0)
	for _, b := range alone {
		if longest > 0 && b.Upper >= longest && !math.IsInf(b.Upper, 1) {
			return b.Upper
		}
	}
	return 0
}

// judgeTokens counts which answers of a gateway took longer for a token than nearly all do without
// batch work.
func (c *Controller) judgeTokens(now time.Time, g *flowcontrol.Reading) *flowcontrol.Reading {
	kept := c.keptTokens()
	if kept == 0 {
		return g
	}
	judged := *g
	judged.TPOT = flowcontrol.Attained(g.TokenTimes, kept)
	if kept != c.kept {
		c.kept = kept
		before := flowcontrol.Growth{Known: true,
			Last: flowcontrol.Attained(c.quiet.lastTokens, kept)}
		c.outcomes.tpot, c.quiet.each.seen = before, before
		alone := flowcontrol.Attained([]flowcontrol.Bucket(c.quiet.tokens), kept)
		c.quiet.each.share = fadingShare{all: alone.Requests, some: alone.Late, at: now}
	}
	return &judged
}
