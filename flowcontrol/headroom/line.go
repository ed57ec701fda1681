package headroom

import (
	"github.com/tidefill/tidefill/costmodel"
)

// LineMix returns the sizes of batch lines, as far as they are known.
func (c *Controller) LineMix() costmodel.Mix {
	lines, context := 0.0, 0.0
	for _, m := range c.roster.Members {
		lines += float64(m.State.own.lines)
		context += m.State.own.context
	}
	return c.sizes.mix(lines, context)
}

// lineKV returns the number of KV tokens that a line of a mix holds; 0 while no line has started.
func (c *Controller) lineKV(mix costmodel.Mix) lineKV {
	if c.sizes.prompt <= 0 {
		return lineKV{}
	}
	lines, ages := c.running()
	return c.sizes.kv(mix, lines, ages)
}

// lineKVApart returns the number of KV tokens that a line holds besides what it shares with others.
func (c *Controller) lineKVApart(mix costmodel.Mix) lineKV {
	if c.sizes.prompt <= 0 {
		return lineKV{}
	}
	lines, ages := c.running()
	return c.sizes.kvApart(mix, lines, ages)
}

// running returns the number of lines that run, and the sum of the output tokens that they have
// produced.
func (c *Controller) running() (lines, ages float64) {
	for _, m := range c.roster.Members {
		own := &m.State.own
		lines += float64(own.lines)
		ages += max(0, own.context-float64(own.lines)*c.sizes.prompt)
	}
	return lines, ages
}

// minPerLine is what a line lengthens an iteration by at least, in milliseconds: a cost model may
// know only what an iteration costs by itself.
const minPerLine = 1e-3

// prefillPart returns the part of prompts in the cost of the lines that start now.
func (c *Controller) prefillPart() float64 {
	model, mix := c.fit.fitted(), c.sizes.latest()
	if mix.Prompt <= 0 || mix.Output <= 0 {
		return 1
	}
	return model.PromptToken(mix.Prompt) * mix.Prompt / mix.Output /
		max(model.PerLine(mix), minPerLine)
}

// lifeOf returns the time that a line runs, in seconds, if an iteration takes ms.
func lifeOf(mix costmodel.Mix, ms float64) float64 { return mix.Output * ms / 1000 }

// lagOf returns the share of the effect of a line with that life that shows only later, 0 to 1.
func (c *Controller) lagOf(life float64) float64 {
	return life / (life + c.tuning.Pace.Lag.Seconds())
}
