package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Explain implements flowcontrol.Explainer.
func (c *Controller) Explain(now time.Time) []flowcontrol.Term {
	model, mix := c.fit.fitted(), c.LineMix()
	slowdown, _ := c.poolSlowdown()
	unseen := c.shared && c.watched && c.blind() && now.Sub(c.began) >= firstReading
	watched, watching := c.watchTimes(now)
	terms := []flowcontrol.Term{
		{Name: flowcontrol.TermTargetShare, Value: c.target.value()},
		{Name: "target share of prefill", Value: c.target.prefill.value},
		{Name: "target share of decode", Value: c.target.decode.value},
		{Name: "prefill part of cost", Value: c.target.part.mean},
		{Name: flowcontrol.TermTarget, Value: c.targetTime(), Unit: "ms"},
		{Name: flowcontrol.TermObjective, Value: c.knownObjective(), Unit: "ms"},
		{Name: flowcontrol.TermConfigured, Value: c.loweredObjective(), Unit: "ms"},
		{Name: flowcontrol.TermPromptTokens, Value: c.promptTokens.value, Unit: "tokens"},
		{Name: "lines by feedback", Value: c.lines, Unit: "lines"},
		{Name: "lines by cost model", Value: c.predictedLines(), Unit: "lines"},
		{Name: "lines by deadlines", Value: c.demanded, Unit: "lines"},
		{Name: "own share", Value: c.ownShare.mean},
		{Name: "virtual late", Value: c.virtual.lateShare.share()},
		{Name: "virtual late in quiet", Value: c.virtual.quiet.share()},
		{Name: "virtual innocent", Value: c.virtual.innocentShare.share()},
		{Name: flowcontrol.TermLate, Value: c.virtual.real.share()},
		{Name: flowcontrol.TermRequests, Value: c.virtual.real.all},
		{Name: "answers", Value: c.answers.lengths[1]},
		{Name: "quiet TTFT", Value: c.quiet.ttft()},
		{Name: "quiet TPOT", Value: c.quiet.tpot()},
		{Name: flowcontrol.TermAlone, Value: c.alone.iteration.mean(), Unit: "ms"},
		{Name: "lines by room", Value: c.linesByRoom()},
		{Name: "packed runners", Value: float64(c.packing.runners), Unit: "runners"},
		{Name: "gateway counts lines", Value: oneIf(c.mixture.mixed())},
		{Name: "best packed", Value: float64(c.bestPacked()), Unit: "runners"},
		{Name: "token time allowed", Value: c.tokens.room, Unit: "ms"},
		{Name: "times as long by KV cache", Value: c.kvLonger},
		{Name: "token time added", Value: c.addedTime(), Unit: "ms"},
		{Name: "prompt share", Value: c.promptShare},
		{Name: flowcontrol.TermFirstObjective, Value: c.knownFirstObjective(), Unit: "ms"},
		{Name: flowcontrol.TermSlowdown, Value: slowdown},
		{Name: flowcontrol.TermLateBudget, Value: c.budget.left()},
		{Name: "lines by late requests", Value: c.lateLines.level.value},
		{Name: "late first tokens expected", Value: c.firstForecast.expected},
		{Name: "late first tokens", Value: c.firstForecast.late},
		{Name: "late answers expected", Value: c.tokenForecast.expected},
		{Name: "late answers", Value: c.tokenForecast.late},
		{Name: "part by token times", Value: c.partByTokenTimes(c.tokenForecast.limit())},
		{Name: "prompt harm", Value: c.promptHarm()},
		{Name: flowcontrol.TermSlowdownAllowed, Value: c.allowedSlowdown()},
		{Name: "target with prompts", Value: c.promptTarget(), Unit: "ms"},
		{Name: "interactive prompt", Value: c.first.prompts.mean(), Unit: "tokens"},
		{Name: "line prompt", Value: mix.Prompt, Unit: "tokens"},
		{Name: "line expected output", Value: c.sizes.expected, Unit: "tokens"},
		{Name: "line output", Value: mix.Output, Unit: "tokens"},
		{Name: "line context", Value: mix.Context, Unit: "tokens"},
		{Name: "fitted c0", Value: model.C0, Unit: "ms"},
		{Name: "fitted sequence", Value: c.fit.perSequence(), Unit: "ms"},
		{Name: "fitted prompt token", Value: c.fit.perToken(), Unit: "ms"},
		{Name: "wasted by evictions", Value: c.waste.share()},
		{Name: flowcontrol.TermWatched, Value: watched.Seconds(), Unit: "s"},
		{Name: flowcontrol.TermWatching, Value: watching.Seconds(), Unit: "s"},
		{Name: flowcontrol.TermUnseen, Value: oneIf(unseen)},
	}
	for _, m := range c.roster.Members {
		r := m.State
		add := func(name string, value float64, unit string) {
			terms = append(terms, flowcontrol.Term{Runner: m.ID, Name: name, Value: value,
				Unit: unit})
		}
		safe, _ := c.safeLines(now, r, mix)
		tokens, _ := c.prompts(now, r)
		add(flowcontrol.TermTokenTime, r.iterations.all.mean(), "ms")
		add("iteration without batch prompts", r.iterations.base.mean(), "ms")
		add(flowcontrol.TermTokenTimeAge, age(now, r.iterations.seenAt), "s")
		add("prompt credit", r.iterations.credit, "ms")
		add("prompt tokens allowed", tokens, "tokens")
		add("lines by first tokens", c.linesByFirstTokens(r), "lines")
		add("lines by feedback", c.linesByFeedback(r), "lines")
		add("safe lines", float64(safe), "lines")
		add("lines by staleness", r.staleness.ceiling, "lines")
		add("knowledge", float64(r.staleness.state), "state")
		add("own context", r.own.context, "tokens")
		add(flowcontrol.TermLoadAge, age(now, r.interactive.seenAt), "s")
		add(flowcontrol.TermInteractiveRunning, r.interactive.shownRunning(), "requests")
		add("interactive context", r.interactive.context.mean, "tokens")
		add("interactive prompts", r.interactive.prompts(), "tokens/s")
		add(flowcontrol.TermInteractiveWaiting, r.interactive.shownWaiting(), "requests")
	}
	return terms
}

// oneIf returns 1 for true and 0 for false.
func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// knownObjective returns the longest time of an iteration, in milliseconds; 0 while a relative
// objective has nothing measured to relate to.
func (c *Controller) knownObjective() float64 {
	if c.slo.Relative() && c.alone.iteration.mean() <= 0 {
		return 0
	}
	return c.objectiveTime()
}

// loweredObjective returns the configured time between tokens, in milliseconds, where the objective
// in force is lower; 0: it is not.
func (c *Controller) loweredObjective() float64 {
	if configured := milliseconds(c.slo.TPOT); c.objectiveTime() < configured {
		return configured
	}
	return 0
}

// knownFirstObjective returns the longest time to first token, in milliseconds; 0 while a relative
// objective has nothing measured to relate to.
func (c *Controller) knownFirstObjective() float64 {
	if c.slo.Relative() && c.keptFirst() == 0 {
		return 0
	}
	return milliseconds(c.firstObjective())
}

// predictedLines returns the number of lines that the cost model alone would let run.
func (c *Controller) predictedLines() float64 {
	l, _ := c.load()
	return c.fit.fitted().Lines(l, c.LineMix(), c.targetTime())
}

// age is in seconds; infinite for what was never seen.
func age(now, at time.Time) float64 {
	if at.IsZero() {
		return math.Inf(1)
	}
	return now.Sub(at).Seconds()
}
