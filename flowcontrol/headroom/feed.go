package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// feed decides on the number of prompts of lines that may wait on a runner without interactive
// requests. The engine must always have one to compute until it is known which are left; without
// streams, that is late. Engines with a bounded queue shed the prompts that are too many.
type feed struct {
	prompts float64   // 0: not decided yet
	refused float64   // prompts at the last shed; 0: none has been shed
	cutAt   time.Time // when a shed last lowered prompts
	short   bool      // a line could not start since the last second because of it
	waiting float64   // requests that waited in the engine by its last metrics
	trust   float64   // the part of the expected rate at which prompts count as computed
	knownAt time.Time // when it was last known which prompts are computed
}

const (
	// feedGrowth is the growth of the waiting prompts in a second while they are too few, as a
	// share. One prompt is added to it.
	feedGrowth = 0.2
	// nearRefused is the part of the prompts of the last shed from which they grow slowly, by
	// slowFeedGrowth.
	nearRefused, slowFeedGrowth = 0.8, 0.01
	// trustGrowth is the growth of trust in a second. At minTrust, sheds lower lines instead.
	trustGrowth, minTrust = 0.05, 0.1
	// longestFeed is the longest time of the prompts that wait, in milliseconds: more than passes
	// between metrics.
	longestFeed = 5000
)

// pass grows the waiting prompts after a second in which they were too few. Between least and most,
// as many as are computed until the next metrics are the right number.
func (f *feed) pass(least, most float64) {
	f.prompts = max(f.prompts, least)
	if f.short && f.waiting < least {
		if f.trust < 1 {
			f.trust = min(1, f.trust+trustGrowth)
		} else if f.refused > 0 && f.prompts >= nearRefused*f.refused {
			f.prompts *= 1 + slowFeedGrowth
		} else {
			f.prompts += 1 + feedGrowth*f.prompts
		}
	}
	f.prompts = min(f.prompts, max(least, most))
	f.short = false
}

// cut lowers the waiting prompts after a shed, at most once per DecreaseEvery. It returns false if
// they are at the least already, so that the number of lines must have been the reason.
func (f *feed) cut(now time.Time, least float64, cfg Tuning) bool {
	if !f.cutAt.IsZero() && now.Sub(f.cutAt) < cfg.DecreaseEvery {
		return true
	}
	f.cutAt = now
	if f.prompts <= least {
		f.trust *= cfg.Decrease
		return f.trust > minTrust
	}
	f.refused = f.prompts
	f.prompts = max(least, cfg.Decrease*f.prompts)
	return true
}

// feedPrompts updates a runner's waiting prompts after a second.
func (c *Controller) feedPrompts(r *runner) {
	if !c.shared {
		r.feed.pass(float64(c.tuning.Pace.MaxPrompts), longestFeed/max(c.promptCost(), 1))
	}
}

// promptsOfFeed returns the number of prompt tokens that may wait on a runner that lines fill, as
// far as is known. more is when that number has grown by a prompt: the engine has computed some
// since.
func (c *Controller) promptsOfFeed(now time.Time, r *runner) (tokens float64, more time.Time) {
	prompt := max(c.sizes.compute, 1)
	tokens = max(r.feed.prompts, float64(c.tuning.Pace.MaxPrompts)) * prompt
	if r.feed.knownAt.IsZero() { // nothing shows it: all lines in flight seem to wait
		return max(tokens, c.linesByFeedback(r)*prompt), time.Time{}
	}
	iteration := c.fit.perIteration() + c.fit.perSequence()*float64(r.own.lines)
	rate := r.feed.trust / (c.fit.perToken() + iteration/c.chunk()) // a millisecond
	since := min(milliseconds(now.Sub(r.feed.knownAt)), longestFeed)
	return tokens + since*rate,
		now.Add(max(5*time.Millisecond, fromMilliseconds(prompt/max(rate, 1e-3))))
}

// shed lowers what a runner gets after it has shed a line.
func (c *Controller) shed(
	now time.Time, m *flowcontrol.Member[*runner], retryAfter time.Duration,
) {
	m.Hold(now, retryAfter)
	if c.shared || !m.State.feed.cut(now, float64(c.tuning.Pace.MaxPrompts), c.tuning) {
		m.State.cut(now, c.lines, c.tuning)
	}
}

// grantToFill sets the number of lines that fill the engine of a runner without interactive
// requests. Its KV cache and its sequences bound them if its cache is known; otherwise they grow as
// they prove to be carried.
func (c *Controller) grantToFill(r *runner, g *flowcontrol.RunnerAllowance) {
	g.Lines, g.Reason = int(c.linesByFeedback(r)+r.extra), flowcontrol.ReasonGrowing
	if r.interactive.capacity(c.engine.KVTokens) > 0 {
		g.Lines, g.Reason = int(c.perRunner(r)), flowcontrol.ReasonRunnerLimit
		lower(g, int(r.yield*c.perRunner(r)), flowcontrol.ReasonShed)
	}
}
