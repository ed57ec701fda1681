package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// resume brings a pool back to what it carried before the controller was replaced.
type resume struct {
	// pending is what another controller has learned, until the pool has been seen; nil: nothing.
	pending *learned
	since   time.Time     // when it was handed over
	age     time.Duration // at that time
	// lines is the number that a runner carries at most until the time until, and packed that of a
	// packed one. rising reports whether lines still rise to it.
	lines  float64
	packed float64
	until  time.Time
	rising bool
}

const (
	// resumeWithin is the age up to which lines return to their number. Later, the pool is watched
	// as if it were new, with what is left of the rest.
	resumeWithin = 30 * time.Minute
	// resumeRise is the time in which lines return to it. resumeHold is the time for which they do
	// not exceed it.
	resumeRise, resumeHold = 20 * time.Second, 45 * time.Second
	// resumeWait is the longest wait for a pool that has shown its users before.
	resumeWait = 30 * time.Second
)

// Half-lives of what was learned. An engine stays as it is; loads change in minutes.
const (
	linesHalf   = 5 * time.Minute
	loadsHalf   = 30 * time.Minute // levels and distributions
	linesOfHalf = time.Hour        // what lines are like
	quietHalf   = 6 * time.Hour
	engineHalf  = 7 * 24 * time.Hour
)

// trust returns which part of what was learned still counts after a time.
func trust(age, half time.Duration) float64 {
	return portable.Exp(-math.Ln2 * age.Seconds() / half.Seconds())
}

// checkResume takes over what is pending once the pool has been seen.
func (c *Controller) checkResume(now time.Time) {
	l := c.resume.pending
	if l == nil {
		return
	}
	waited := now.Sub(c.resume.since)
	gateway, shown := !c.source.gateway.IsZero(), 0
	for _, m := range c.roster.Members {
		if c.recent(now, m.State.interactive.seenAt) {
			shown++
		}
	}
	seen := shown > 0 && l.Metrics || gateway && l.Gateway
	all := (gateway || !l.Gateway) && (shown == len(c.roster.Members) || !l.Metrics)
	switch {
	case (l.Metrics || l.Gateway) && !seen:
		if waited >= resumeWait { // the pool is another one than before
			c.resume = resume{}
		}
	case all && seen, waited >= firstReading:
		c.takeOver(now)
	}
}

// takeOver takes over what is pending, as far as it was learned under the same settings.
func (c *Controller) takeOver(now time.Time) {
	l, age := c.resume.pending, c.resume.age+now.Sub(c.resume.since)
	c.resume = resume{}
	same := l.Under == c.settings()
	if l.Under.Engine == c.engine && (same || c.engine.CostModel.Known()) {
		c.fit.learn(l.Fit, trust(age, engineHalf))
	}
	c.sizes.learn(l.Sizes, trust(age, linesOfHalf))
	if len(l.Answers) > 0 && len(l.FineAnswers) > 0 && age < quietMemory {
		copy(c.answers.lengths[:], l.Answers)
		copy(c.answers.fine[:], l.FineAnswers)
	}
	if old := trust(age, loadsHalf) * l.AloneAge; l.Alone > 0 && old > c.alone.iteration.age {
		c.alone.iteration = slowMean{value: l.Alone, age: old, at: now}
	}
	c.packing.changed = now
	if same {
		c.takeOverPool(now, l, age)
	}
	c.invalidate()
}

// takeOverPool takes over what is known of the pool's load and of its interactive requests, which
// is relative to the objectives.
func (c *Controller) takeOverPool(now time.Time, l *learned, age time.Duration) {
	load, quiet, seconds := trust(age, loadsHalf), trust(age, quietHalf), age.Seconds()
	c.alone.shares.learn(now, l.AloneShares, load)
	c.first.alone.learn(now, l.First, load)
	c.slots.seen.learn(now, l.Slots, load)
	c.kvDemand.learn(now, l.KV, load)
	c.tokens.learn(now, l.TokenTimes, load)
	c.quiet.learn(now, l.Quiet, c.slo.WithUsual().TTFT.Seconds(), seconds, quiet)
	c.objective = c.firstObjective()
	c.virtual.learn(now, l.Virtual, seconds, quiet)
	c.firstForecast.learn(now, l.FirstForecast, seconds)
	c.tokenForecast.learn(now, l.TokenForecast, seconds)
	c.budget.learn(now, l.Budget, seconds)
	c.lateLines.learn(l.LateLines, load)
	c.first.prompts.tokens = spread{mean: l.Prompt.All, at: ago(now, seconds+l.Prompt.Ago)}
	c.first.prompts.count = spread{mean: l.Prompt.Some, at: ago(now, seconds+l.Prompt.Ago)}
	c.target.prefill.learn(l.Prefill, load)
	c.target.decode.learn(l.Decode, load)
	c.promptTokens.learn(l.Prompts, load)
	c.waste = waste{answered: l.Waste.All, wasted: l.Waste.Some}
	c.waste.fade(age)
	c.packing.pause = now.Sub(ago(now, l.Packing.Pause))
	c.packing.until = now.Add(now.Sub(ago(now, l.Packing.Left)) - age)
	c.answerTimes.learn(now, l.AnswerTime, seconds)
	c.answerTokenTimes.learn(now, l.TokenTime, seconds)
	if l.PromptTime.Best > 0 {
		c.tokenBound = tokenBound{l.PromptTime.Best, ago(now, seconds+l.PromptTime.Ago)}
	}
	if known := ago(now, load*l.Known); known.Before(c.began) {
		c.began = known
	}
	if age > resumeWithin {
		return
	}
	c.watched = true
	lines := min(trust(age, linesHalf)*l.Lines, c.maxPerRunner())
	c.resume = resume{lines: max(lines, min(l.Lines, float64(c.cfg.Start))), rising: true,
		until: now.Add(resumeHold), packed: trust(age, linesHalf) * l.Packing.Lines}
	c.lines = min(c.lines, c.resume.lines)
	if c.resume.packed >= 1 { // they fill as they did before
		c.packing.runners = min(l.Packing.Runners, len(c.roster.Members)-1)
	}
}

func (a *answerTimes) learn(now time.Time, l learnedBest, age float64) {
	if l.Best > 0 {
		a.best, a.bestAt = l.Best, ago(now, age+l.Ago)
	}
}

// rise lets lines return to their earlier number, until iterations are as long as they may be.
func (c *Controller) rise(now time.Time, dt time.Duration) {
	r := &c.resume
	if !r.rising || !now.Before(r.until) {
		return
	}
	for _, m := range c.roster.Members {
		if it := &m.State.iterations; c.recent(now, it.seenAt) && it.all.mean() > c.targetTime() {
			r.rising = false
			return
		}
	}
	c.lines += r.lines * min(1, dt.Seconds()/resumeRise.Seconds())
	r.rising = c.lines < r.lines
}

// heldBack returns the greatest number of lines on a runner, and on a packed one, while the pool is
// brought back.
func (r *resume) heldBack(now time.Time) (lines, packed float64) {
	if r.until.IsZero() || !now.Before(r.until) {
		return math.Inf(1), math.Inf(1)
	}
	return r.lines, max(r.packed, r.lines)
}
