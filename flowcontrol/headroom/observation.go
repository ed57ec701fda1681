package headroom

import (
	"cmp"
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// observe updates the state from an observation of a runner. It reports whether the allowance may
// have changed.
func (c *Controller) observe(
	now time.Time, m *flowcontrol.Member[*runner], o flowcontrol.Observation,
) (changed bool) {
	r := m.State
	switch o := o.(type) {
	case *flowcontrol.Started:
		c.carriedAt = now
		r.budget -= promptBudget(c.promptTime() * float64(o.PromptTokens-o.CachedTokens))
		c.sizes.start(o.PromptTokens, o.CachedTokens, o.OutputTokens, o.LongOutput)
	case *flowcontrol.Answered:
		m.Answered()
		c.answered(now, r, o)
	case *flowcontrol.FirstToken:
		r.feed.knownAt = now
		if o.Latency > 0 { // not concluded from metrics
			r.iterations.promptAt = now
			r.unanswered = 0
		}
		r.staleness.observed(now)
	case *flowcontrol.TokenGaps:
		r.unanswered = 0
		r.staleness.observed(now)
	case *flowcontrol.Shed:
		c.shed(now, m, o.RetryAfter)
	case *flowcontrol.Broken:
		r.unanswered++
		r.staleness.lineBroke(now, c.tuning.Staleness)
	case *flowcontrol.Evicted:
		produced := milliseconds(o.Latency) / max(r.iterations.all.mean(), 1)
		c.waste.wasted += c.sizes.prompt*min(1, o.Latency.Seconds()) + produced
		r.own.context -= produced
	case *flowcontrol.Read:
		return c.readRunner(now, r, o.Reading)
	default:
		return false
	}
	if line, ok := o.(carrying); ok {
		r.own.observe(now, line, &c.sizes)
		r.ownFirst.observe(now, line)
		r.backlog.observe(now, line)
	}
	if gaps, ok := o.(*flowcontrol.TokenGaps); ok {
		c.streamedGaps(now, r, gaps)
	}
	r.changed = true
	return true
}

// answered updates the state from the answer of a line.
func (c *Controller) answered(now time.Time, r *runner, o *flowcontrol.Answered) {
	c.mixture.answers++
	c.mixedTokens.answered(o, c.longestToken())
	c.linesAnswered++
	r.unanswered = 0
	r.staleness.observed(now)
	c.sizes.answer(o.PromptTokens, o.CachedTokens, o.OutputTokens)
	r.ownAnswers.answered(o.OutputTokens)
	c.waste.answered += float64(o.PromptTokens + o.OutputTokens)
	c.tokenBound.see(now, o.Latency, cmp.Or(o.Estimated, o.PromptTokens)-o.CachedTokens)
	if !c.seesIterations() { // prompts were charged by a guess; they took no longer than this
		r.budget = max(r.budget, -promptBudget(milliseconds(o.Latency)))
	}
	switch {
	case !c.seesIterations() && (c.slo.Relative() || o.OutputTokens < fewOutput),
		c.blind() && c.recent(now, r.interactive.seenAt):
		c.answeredBlind(now, o.Latency, o.OutputTokens)
	case c.recent(now, r.iterations.seenAt), c.recent(now, r.interactive.seenAt):
	case o.OutputTokens >= fewOutput:
		// This is a mean over the line's time in the runner, including the time of waiting. It is
		// late, and rather too high.
		c.unstreamed(r, milliseconds(o.Latency)/float64(o.OutputTokens),
			o.Latency/time.Duration(max(1, r.own.lines)))
	}
}

// readRunner updates the state from a reading of a runner. It reports whether the allowance may
// have changed.
func (c *Controller) readRunner(now time.Time, r *runner, m *flowcontrol.Reading) (changed bool) {
	switch {
	case m.Source == flowcontrol.Capabilities:
		changed = r.queued.read(m, &r.own)
	case m.Source == flowcontrol.Metrics && c.readMetrics(now, r, m):
		r.staleness.observed(m.Sampled)
		changed = true
	}
	r.changed = r.changed || changed
	return changed
}

// recent reports whether the time is at most AgingAfter ago.
func (c *Controller) recent(now, at time.Time) bool {
	return !at.IsZero() && now.Sub(at) <= c.tuning.Staleness.AgingAfter
}

// readMetrics updates the state from an engine's metrics. It returns false if they show nothing
// new.
func (c *Controller) readMetrics(now time.Time, r *runner, m *flowcontrol.Reading) bool {
	if r.interactive.gauged && showsNoLoad(m) {
		if in := &r.interactive; !in.seenAt.IsZero() && !c.recent(now, in.seenAt) {
			in.forget()
			c.invalidate()
		}
		return false
	}
	r.feed.waiting, r.feed.knownAt = max(m.Waiting, 0), m.Sampled
	before, seen := r.interactive.counters, r.interactive.seenAt
	s, ok := r.interactive.read(m, &r.own, c.engine.KVTokens,
		c.fit.perIteration())
	if !ok {
		return false
	}
	if seqs := float64(c.engine.MaxSeqs); r.packed == 0 && seqs > 0 && m.Running >= 0 {
		c.slots.see(now, r.interactive.demand, seqs)
	}
	if seqs := float64(c.engine.MaxSeqs); seqs > 0 {
		r.slotPressure.update(now, &r.own, m.Running, seqs, r.interactive.waiting,
			c.mayEvict(r), c.tuning.Brake.Hold)
	}
	if c.engineAnswers.read(before.AnswerLengths, m.AnswerLengths,
		&r.ownAnswers); !c.gatewayShowsAnswers {
		c.answers.read(c.engineAnswers.interactive())
	}
	c.usersAnswered += r.answered.read(before.AnswerLengths, m.AnswerLengths,
		r.own.at(m.Sampled).answered-r.own.at(seen).answered)
	c.engineFirst.add(&before, m, &r.ownFirst)
	if s.kvShown && r.packed == 0 {
		asked := s.kvHeld + r.interactive.waiting*c.first.prompts.mean()
		c.kvDemand.fade(now)
		c.kvDemand.add(asked/r.interactive.capacity(c.engine.KVTokens), r.interactive.demand+0.05)
	}
	if capacity := r.interactive.capacity(c.engine.KVTokens); m.KVUsed >= 0 && capacity > 0 {
		slots := c.engine.MaxSeqs == 0 || m.Running < almostAll*float64(c.engine.MaxSeqs)
		held := r.own.held(m.Sampled, c.sizes.prompt, r.iterations.all.mean()) / capacity
		if r.packed == 0 {
			c.seeKVAlone(m.Sampled, r, max(0, m.KVUsed-held))
		}
		blocked := r.kvPressure.blocks(&r.own, &r.interactive, m.KVUsed, held,
			c.tuning.Reserve.KVUsed, slots)
		r.kvPressure.update(now, &r.own, m.KVUsed, held, s.preempted, blocked, c.mayEvict(r),
			c.tuning)
	}
	if s.iteration > 0 && r.iterations.useMetrics(now, s.period) {
		r.iterations.fromMetrics, r.iterations.every = true, s.period
		r.gapVariance = gapVariance(before.GapTimes, m.GapTimes)
		c.tokenGaps(now, r, s.iterations, s.iterations*s.iteration)
	}
	return true
}

// unstreamed updates the state from an iteration time that was computed from a line's latency, not
// from token gaps.
func (c *Controller) unstreamed(r *runner, ms float64, period time.Duration) {
	r.iterations.unstreamed(ms, period, c.tuning.Pace)
	c.follow(r, min(period, 5*time.Second), c.tuning.Pace.GainUnstreamed)
}

// streamedGaps updates the state from gaps between tokens of lines.
func (c *Controller) streamedGaps(now time.Time, r *runner, o *flowcontrol.TokenGaps) {
	it := &r.iterations
	it.streamed += milliseconds(o.Time)
	if it.rare && now.Sub(it.seenAt) <= it.silence() {
		return // metrics show more
	}
	it.fromMetrics, it.every, r.gapVariance = false, 0, 0
	c.tokenGaps(now, r, float64(o.Gaps), milliseconds(o.Time))
}

// tokenGaps updates the state from n gaps between tokens, which took ms milliseconds together.
func (c *Controller) tokenGaps(now time.Time, r *runner, n, ms float64) {
	computed := r.own.computed - r.iterations.accounted
	period, ok := r.iterations.gaps(now, n, ms, c.promptTarget(), &r.own, &c.fit, c.tuning.Pace)
	if !ok {
		return
	}
	if r.packed > 0 {
		return
	}
	c.countVirtual(now, r, n, ms/n, max(0, computed))
	if m, ok := r.iterations.measured(); ok {
		c.correct(now, r, m)
	}
	c.follow(r, period, c.tuning.Pace.Gain)
}

// correct corrects the cost model by a measurement.
func (c *Controller) correct(now time.Time, r *runner, m measurement) {
	mean, tokens := m.time/m.iterations, m.prompted/m.iterations
	decoding := r.own.decoding(c.sizes.compute)
	if in := &r.interactive; c.recent(now, in.seenAt) {
		decoding += in.running.mean
		tokens += in.prompts() * mean / 1000
	}
	c.fit.add(decoding, tokens, mean)
}

// readGateway updates the levels from the gateway's counts of late interactive requests.
func (c *Controller) readGateway(now time.Time, g *flowcontrol.Reading) (changed bool) {
	if g.Source == flowcontrol.Gateway {
		if !c.source.newer(now, g) {
			return false
		}
		c.mixture.count(now, g)
		g = c.judgeTokens(now, g)
		c.readMixedTokens(now, g)
	}
	if !c.uses(now, g) {
		return false
	}
	if g.Source == flowcontrol.Gateway && !c.slo.Relative() && c.outcomes.countedIn(g) {
		c.seenServed(g.Sampled)
	}
	c.tokens.read(now, g.TokenTimes, c.addedTime())
	objective := c.firstObjective()
	slowdown, _ := c.poolSlowdown()
	before := c.first.last
	c.first.read(now, g.FirstTokenTimes, objective, slowdown)
	uncertain := hidden(before, g.FirstTokenTimes, objective.Seconds())
	ttft, since := g.TTFT, flowcontrol.Growth{}
	if objective > c.slo.TTFT && (c.slo.TTFT > 0 || c.keptFirst() > 0) {
		part := c.first.recent.lateInBucket(objective.Seconds())
		ttft = attained(g.FirstTokenTimes, objective.Seconds(), part)
		since = flowcontrol.Growth{Last: attained(before, objective.Seconds(), part), Known: true}
	}
	if objective != c.objective {
		c.objective, c.outcomes.ttft, c.quiet.first.seen = objective, since, since
		c.quiet.judge(now, objective)
	}
	c.first.prompts.read(now, g.Sampled, countedFirstTokens(g), c.promptRate())
	c.gatewayShowsAnswers = g.Source == flowcontrol.Gateway && len(g.AnswerLengths) > 0
	c.answers.read(g.AnswerLengths)
	c.quiet.read(now, g, ttft, c.slo.WithUsual().TTFT.Seconds(), c.withoutUs(now))
	defer func() { c.linesAnswered = 0 }()
	// Requests count once: by their first tokens, or without an objective for these, by their
	// answers.
	byAnswers := true
	if c.ownShare.mean < innocentShare {
		// Batch lines do not cause late requests while hardly any of them run.
		if requests, late, ok := c.outcomes.ttft.Since(ttft); ok {
			byAnswers = false
			requests = c.withoutLines(g, requests, late)
			c.judged.FirstTokens.Add(requests, late, 0)
			c.counted.read(now, requests)
			c.firstForecast.read(now, requests, 0, uncertain)
			c.chargeLate(now, requests, 0)
			if c.promptTokens.value < c.tuning.PromptTokens.Start {
				c.promptTokens.update(now, requests, 0, 1)
			}
		}
		if requests, late, ok := c.outcomes.tpot.Since(g.TPOT); ok {
			requests = c.withoutLines(g, requests, late)
			c.judged.Tokens.Add(requests, late, 0)
			// What was late before must not count for ever.
			c.virtual.real.add(now, realWindow, requests, 0)
			c.tokenForecast.read(now, requests, 0, 0)
			if byAnswers {
				c.counted.read(now, requests)
				c.chargeLate(now, requests, 0)
			}
		}
		return true
	}
	if requests, late, ok := c.outcomes.ttft.Since(ttft); ok {
		byAnswers = false
		requests = c.withoutLines(g, requests, late)
		charged := c.attribution.caused(now, before, g.FirstTokenTimes, objective,
			c.lateFirst.add(late, requests*c.quiet.ttft()))
		c.judged.FirstTokens.Add(requests, late, charged)
		c.counted.read(now, requests)
		c.promptTokens.update(now, requests, charged, 1)
		c.firstForecast.read(now, requests, charged, uncertain)
		c.chargeLate(now, requests, charged)
		c.outcomes.recentLate.add(now, recentWindow, requests, late)
		c.outcomes.overload.see(now, requests, late)
	}
	if requests, late, ok := c.outcomes.tpot.Since(g.TPOT); ok {
		all := requests
		requests = c.withoutLines(g, requests, late)
		c.virtual.real.add(now, realWindow, requests, late)
		c.virtual.realRequests += requests
		charged := c.lateTokens.add(late, requests*c.quiet.tpot())
		c.virtual.realLate += charged
		c.tokenForecast.read(now, requests, charged, 0)
		// Tokens of lines and of users come in the same iterations, so users have their share of
		// the late answers that a gateway counts for both.
		charged = charged * (requests / max(all, 1))
		c.judged.Tokens.Add(requests, late, charged)
		if byAnswers {
			c.counted.read(now, requests)
		} else {
			requests = 0
		}
		c.chargeLate(now, requests, charged)
		c.outcomes.recentLate.add(now, recentWindow, requests, late)
		c.outcomes.overload.see(now, requests, late)
	}
	c.invalidate()
	return true
}

// countedFirstTokens returns the number of first tokens that a gateway has counted, with or without
// an objective for them.
func countedFirstTokens(g *flowcontrol.Reading) float64 {
	return counted(g.TTFT, g.FirstTokenTimes)
}

// countedAnswers returns the same for the time between tokens.
func countedAnswers(g *flowcontrol.Reading) float64 { return counted(g.TPOT, g.TokenTimes) }

func counted(judged flowcontrol.Attainment, times []flowcontrol.Bucket) float64 {
	if n := len(times); n > 0 && math.IsNaN(judged.Requests) {
		return times[n-1].Count
	}
	return judged.Requests
}

// promptRate returns the number of prompt tokens of interactive requests that are computed in a
// second.
func (c *Controller) promptRate() float64 {
	rate := 0.0
	for _, m := range c.roster.Members {
		rate += m.State.interactive.prompts()
	}
	return rate
}

// fewOutput is the length of the shortest answer whose duration shows the time of iterations, in
// tokens. The duration of a shorter one is mostly the time of its prompt.
const fewOutput = 16
