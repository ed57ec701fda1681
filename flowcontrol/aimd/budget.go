package aimd

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// ReasonBudget: the requests or tokens that the provider grants per minute are used up.
const ReasonBudget flowcontrol.Reason = "budget"

// bucket fills at a rate, and what is used is taken from it. It holds what comes in a second, so
// that no minute has more than a sixtieth above its budget.
type bucket struct {
	perSecond float64 // 0: there is no budget
	level     float64
	at        time.Time // of level; zero: it was never used
}

func (b *bucket) fill(now time.Time, atLeast float64) {
	most := max(atLeast, b.perSecond)
	if b.at.IsZero() {
		b.level = most
	} else if passed := now.Sub(b.at).Seconds(); passed > 0 {
		b.level = max(b.level, min(most, b.level+passed*b.perSecond))
	}
	b.at = now
}

// wait returns the time until the level is reached.
func (b *bucket) wait(level float64) time.Duration {
	missing := max(0, level-b.level)
	return time.Duration(math.Ceil(missing / b.perSecond * float64(time.Second)))
}

// budget is what a provider grants per minute, and what its answers may cost per day.
type budget struct {
	requests, tokens bucket
	money            *money // nil: it is not limited
	// charged is what lines in flight were charged in tokens, lines their number. An answer shows
	// what its line has used.
	charged float64
	lines   int
	output  float64 // mean output tokens of an answer
	answers int
}

// newBudget returns the budget of a configuration; nil: there is none.
func newBudget(c Config) *budget {
	if c.RequestsPerMinute == 0 && c.TokensPerMinute == 0 && c.Money.PerDay == 0 {
		return nil
	}
	b := &budget{requests: bucket{perSecond: float64(c.RequestsPerMinute) / 60},
		tokens: bucket{perSecond: float64(c.TokensPerMinute) / 60}}
	if c.Money.PerDay > 0 {
		b.money = &money{cfg: c.Money}
	}
	return b
}

// started charges a line.
func (b *budget) started(now time.Time, o *flowcontrol.Started) {
	output := float64(o.OutputTokens)
	if output == 0 {
		output = b.output
	}
	tokens := float64(o.PromptTokens) + output
	b.requests.fill(now, 1)
	b.tokens.fill(now, 1)
	b.requests.level--
	b.tokens.level -= tokens
	b.charged += tokens
	b.lines++
	if b.money != nil {
		b.money.started(now, float64(o.PromptTokens), output)
	}
}

// ended corrects the charge of a line by what it has used.
func (b *budget) ended(tokens float64) {
	if b.lines == 0 {
		return // it was sent before
	}
	mean := b.charged / float64(b.lines)
	b.charged -= mean
	b.lines--
	b.tokens.level += mean - tokens
}

// answered corrects the charge of a line, and what the next ones are expected to use.
func (b *budget) answered(now time.Time, o *flowcontrol.Answered) {
	if b.money != nil {
		b.money.answered(now, float64(o.PromptTokens), float64(o.OutputTokens))
	}
	if o.PromptTokens+o.OutputTokens == 0 { // unknown: the estimate stays
		if b.lines > 0 {
			b.ended(b.charged / float64(b.lines))
		}
		return
	}
	b.ended(float64(o.PromptTokens + o.OutputTokens))
	b.answers = min(b.answers+1, 100)
	b.output += (float64(o.OutputTokens) - b.output) / float64(b.answers)
}

// left returns the number of lines that may start now and, if it is 0, when one may and what it
// waits for.
func (b *budget) left(now time.Time) (lines int, until time.Time, why flowcontrol.Reason) {
	lines = math.MaxInt32
	wait := func(at time.Time, reason flowcontrol.Reason) {
		lines = 0
		if at.After(until) {
			until, why = at, reason
		}
	}
	if b.requests.perSecond > 0 {
		b.requests.fill(now, 1)
		lines = max(0, int(b.requests.level+1e-9))
		if lines == 0 {
			wait(now.Add(b.requests.wait(1)), ReasonBudget)
		}
	}
	if b.tokens.perSecond > 0 {
		b.tokens.fill(now, 1)
		if b.tokens.level <= 0 {
			wait(now.Add(b.tokens.wait(1)), ReasonBudget)
		} else { // each start is charged, so further ones are judged anew
			lines = min(lines, 1)
		}
	}
	if b.money != nil {
		if b.money.used(now) >= b.money.cfg.PerDay {
			wait(nextDay(now), ReasonMoney)
		} else {
			lines = min(lines, 1)
		}
	}
	return lines, until, why
}
