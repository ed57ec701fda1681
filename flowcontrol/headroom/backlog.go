package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// backlog estimates the prompt tokens of batch lines that a runner has still to compute, where
// nothing shows them for long. Without streams and fresh metrics nothing shows when a prompt is
// computed, and lines in flight would never be more than prompts that may wait.
type backlog struct {
	tokens, rate float64 // rate is a millisecond's
	at           time.Time
}

// computedShare is the part of the time that users' prompts leave in which prompts of lines are
// taken to be computed, and blindlyComputedShare that of all the time where nothing shows users.
const computedShare, blindlyComputedShare = 0.5, 0.1

// observe follows the prompts of lines that start and that are computed.
func (b *backlog) observe(now time.Time, o carrying) {
	b.drain(now)
	if line, ok := o.(*flowcontrol.Started); ok {
		b.tokens += float64(line.PromptTokens - line.CachedTokens)
	}
	b.tokens = min(b.tokens, float64(o.Carried().Prefilling))
}

func (b *backlog) drain(now time.Time) {
	if !b.at.IsZero() {
		b.tokens = max(0, b.tokens-b.rate*milliseconds(now.Sub(b.at)))
	}
	b.at = now
}

// updateBacklog sets the rate at which a runner is taken to compute prompts of lines, in tokens a
// millisecond.
func (c *Controller) updateBacklog(now time.Time, r *runner) {
	r.backlog.drain(now)
	iteration := max(r.iterations.all.mean(), c.fit.perIteration())
	rate := 1 / (c.fit.perToken() + iteration/c.chunk())
	if r.interactive.seenAt.IsZero() {
		r.backlog.rate = blindlyComputedShare * rate
		return
	}
	r.backlog.rate = computedShare * max(0, rate-r.interactive.prompts()/1000)
}

// computedUnseen returns the number of prompt tokens that count as waiting and that a runner has
// probably computed.
func (r *runner) computedUnseen() float64 {
	return max(0, float64(r.own.prefilling)-r.backlog.tokens)
}
