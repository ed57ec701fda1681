package headroom

import (
	"math"
	"time"
)

// maxPromptShare is the part of the time that prompts may take where they harm nobody.
const maxPromptShare = 0.95

// blindPromptShare is the part of the time that prompts may take where nothing shows what is left
// of the objective: as much as with the relative one.
const blindPromptShare = 0.15

// minPromptShare lets a prompt start now and then, so that something is observed.
const minPromptShare = 1e-5

// updatePromptShare sets which part of the time prompts of batch lines may take. An interactive
// request that arrives within it waits for the rest of such a prompt.
func (c *Controller) updatePromptShare() {
	if c.slo.Relative() {
		c.promptShare = min(c.relativePromptShare(), maxPromptShare)
		return
	}
	harm := c.promptHarm() * c.firstForecast.error()
	c.promptShare = min(c.firstForecast.allowed/max(harm, 1e-6), maxPromptShare)
	if c.blind() && !c.promptsAreFree() {
		c.promptShare = min(c.promptShare, blindPromptShare)
	}
	if c.slo.TPOT > 0 {
		c.promptShare = min(c.promptShare, c.partByTokenTimes(c.tokenForecast.limit()))
	}
	c.promptShare = max(c.promptShare, minPromptShare) // 0 would mean that it is not known
}

// relativePromptShare returns which part of the time prompts may take so that neither iterations
// nor first tokens take much longer on average. Lines that decode delay all first tokens a little.
// That of an interactive request that arrives while a prompt is computed waits for half of it: for
// long prompts, that is several times what it takes alone.
func (c *Controller) relativePromptShare() float64 {
	share := c.slo.Slowdown - 1
	if waits := c.longPrompt() / 2; waits > 0 {
		_, byLines := c.poolSlowdown()
		share = min(share, max(0, c.slo.Slowdown-byLines)*c.poolFirstAlone()/waits)
	}
	return max(share, minPromptShare)
}

// longPrompt returns the time for which the prompts of batch lines are computed that a request
// meets, in milliseconds. Long ones are met more often, and so are those that are computed
// together.
func (c *Controller) longPrompt() float64 {
	return max(c.sizes.longPrompts()*c.promptCost(), c.promptsAtOnce.mean)
}

// promptHarm returns which share of the interactive requests that arrive while a prompt of a batch
// line is computed is expected to have a late first token because of it. What is left of the prompt
// then is anything between nothing and all of it.
func (c *Controller) promptHarm() float64 {
	all := c.longPrompt() / milliseconds(c.firstObjective())
	return (c.first.endangered(all/6) + c.first.endangered(all/2) + c.first.endangered(all*5/6)) / 3
}

// limitsPrompts reports whether prompts may take only a part of the time.
func (c *Controller) limitsPrompts() bool {
	return c.shared && !c.target.fixed() && !c.promptsAreFree() &&
		c.promptShare > 0 && c.promptShare < maxPromptShare
}

// promptTarget returns the target of the mean iteration with the prompts of batch lines, in
// milliseconds.
func (c *Controller) promptTarget() float64 {
	target := c.targetTime()
	if c.alone.now > 0 && c.limitsPrompts() && !c.slo.Relative() {
		target = min(target, c.alone.withLines/(1-c.promptShare))
	}
	return target
}

// promptTime returns the time of a token of a prompt that is alone in its chunks, in milliseconds.
func (c *Controller) promptTime() float64 {
	iteration := c.alone.now
	if iteration <= 0 {
		iteration = c.fit.perIteration()
	}
	ms := c.fit.perToken() + iteration/c.chunk()
	if bound := c.tokenBound.ms; bound > 0 && !c.seesIterations() {
		return min(ms, bound) // ms is a guess
	}
	return ms
}

// promptCost returns the time for which the prompt of a mean line is computed, in milliseconds.
func (c *Controller) promptCost() float64 {
	return c.sizes.compute * c.promptTime()
}

// promptBudget is the time that prompts of a runner may take from now on, in milliseconds.
type promptBudget float64

// maxPromptPause is the longest time for which a prompt keeps others from starting, in
// milliseconds.
const maxPromptPause = float64(2 * time.Minute / time.Millisecond)

// pass adds the share of ms milliseconds. What is saved is bounded by about one prompt.
func (b *promptBudget) pass(ms, share, prompt float64) {
	most := max(prompt, share*1000)
	*b = promptBudget(math.Max(-share*maxPromptPause,
		min(float64(*b)+share*ms, most)))
}
