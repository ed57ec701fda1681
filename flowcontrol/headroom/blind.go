package headroom

import (
	"time"
)

// answerTimes decides on the lines of a pool that shows nothing but the time of its answers. It
// adds lines, a few per round of answers, while answers take no longer than at best.
type answerTimes struct {
	answers, parts, ms float64 // of this round
	best               float64 // mean of a part in the best round, in milliseconds; 0: unknown
	bestAt             time.Time
}

const (
	// roundOfAnswers is the least number of answers that are compared: single ones differ too much.
	roundOfAnswers = 20
	// bestFor is the time for which the best round counts. Later rounds may be of other lines.
	bestFor = 10 * time.Minute
	// roundGrowth is the factor by which the lines grow in a round, besides one.
	roundGrowth = 1.1
	// unnoticed is the time by which an answer may take longer in any case, in milliseconds:
	// servers and networks vary as much.
	unnoticed = 10
	// seenSlowdown is the factor by which answers may take longer where a gateway shows users.
	// Users who are late limit lines, so it bounds only the growth of the lines.
	seenSlowdown = 4
	// roundFall is the least factor by which they change in one.
	roundFall = 0.7
)

// add adds an answer that took ms milliseconds for some parts while the pool carried some lines. It
// returns the number of lines that a runner should carry instead of the present one.
func (a *answerTimes) add(
	now time.Time, ms, parts, carried, lines, slowdown float64,
) float64 {
	a.answers++
	a.parts += parts
	a.ms += ms
	if a.answers < max(roundOfAnswers, carried) {
		return lines
	}
	mean, unnoticed := a.ms/a.parts, unnoticed*a.answers/a.parts
	a.answers, a.parts, a.ms = 0, 0, 0
	alone := carried <= 1 // users, not lines, are why it took as long
	if alone || a.best == 0 || mean < a.best || now.Sub(a.bestAt) > bestFor {
		a.best, a.bestAt = mean, now
	}
	if allowed := slowdown*a.best + unnoticed; mean > allowed {
		return lines * max(roundFall, allowed/mean)
	}
	return roundGrowth*lines + 1
}

// seesIterations reports whether streams or metrics have ever shown an iteration of the pool's
// engines. Those of embeddings show none.
func (c *Controller) seesIterations() bool {
	for _, m := range c.roster.Members {
		if !m.State.iterations.seenAt.IsZero() {
			return true
		}
	}
	return false
}

// blind reports whether nothing shows iterations, and no gateway shows users.
func (c *Controller) blind() bool { return !c.seesIterations() && c.outcomes.at.IsZero() }

// instant is the time of answers, in milliseconds, that no engine with much to compute attains.
const instant = 20

// tokenBound is the longest time of a prompt token that answers show, in milliseconds: the prompt
// was computed in the time of the answer. Tokens are those that were estimated, if known, since the
// bound limits what prompts are charged, by their estimates.
type tokenBound struct {
	ms float64 // 0: unknown
	at time.Time
}

// minPrompt is the length of the shortest prompt that shows the cost of one, in tokens.
const minPrompt = 64

func (b *tokenBound) see(now time.Time, latency time.Duration, prompt int) {
	if prompt < minPrompt {
		return
	}
	ms := milliseconds(latency) / float64(prompt)
	if b.ms == 0 || ms < b.ms || now.Sub(b.at) > bestFor {
		b.ms, b.at = ms, now
	}
}

// promptsAreFree reports whether prompts need no limit in a blind pool, in which their cost is a
// guess: metrics show no user, or answers come too fast for any cost.
func (c *Controller) promptsAreFree() bool {
	if !c.blind() {
		return false
	}
	if best := c.answerTimes.best; best > 0 && best < instant {
		return true
	}
	for _, m := range c.roster.Members {
		if in := &m.State.interactive; !c.recent(c.ticked, in.seenAt) || in.running.mean > 0.01 {
			return false
		}
	}
	return true
}

// answeredBlind updates the lines by an answer in a pool that shows no iterations. A short answer
// is mostly the time of its prompt, so it does not show the time of iterations. Each token of a
// long one takes an iteration.
func (c *Controller) answeredBlind(now time.Time, latency time.Duration, output int) {
	carried := 0.0
	for _, m := range c.roster.Members {
		carried += float64(m.State.own.lines)
	}
	times, parts := &c.answerTimes, 1.0
	if output >= fewOutput {
		times, parts = &c.answerTokenTimes, float64(output)
	}
	slowdown := c.slo.Slowdown
	if !c.outcomes.at.IsZero() && !c.slo.Relative() {
		slowdown = seenSlowdown
	}
	c.lines = times.add(now, milliseconds(latency), parts, carried, c.lines, slowdown)
	c.boundLines()
}
