package flowcontrol

import (
	"time"

	"github.com/tidefill/tidefill/costmodel"
)

// theta is the share of the SLO's TPOT that iterations may take on average. It is two levels: one
// for iterations that prompts of ours make long, which stop at once when interactive prompts come,
// and a lower one for those that are long by lines alone, which can't be taken back. What holds
// lies between, by the part that prompts have in what our work costs, so that a job of another kind
// begins with what is known of its kind and not of the last.
type theta struct {
	prompts, lines level
	part           spread // of what our work costs, that prompts are
}

// kindMemory is how far back the kind of our work is looked for: as long as a report or two needs
// to show it.
const kindMemory = 5 * time.Second

func newTheta(cfg ProbeConfig, late float64) theta {
	standing := cfg.Theta
	standing.Start = min(max(cfg.Standing, standing.Least), standing.Most)
	return theta{prompts: newLevel(cfg.Theta, late), lines: newLevel(standing, late)}
}

// see takes note of the part that prompts have in what our work costs.
func (t *theta) see(now time.Time, part float64) { t.part.add(now, kindMemory, part) }

// between is part of the way from what goes for lines to what goes for prompts.
func (t *theta) between(lines, prompts float64) float64 {
	return lines + float64(t.part.mean*(prompts-lines))
}

// value is theta as it is now.
func (t *theta) value() float64 { return t.between(t.lines.value(), t.prompts.value()) }

// rest is where it comes back to when late requests are forgotten.
func (t *theta) rest() float64 { return t.between(t.lines.rest, t.prompts.rest) }

// spend takes note of requests that came back, and of how many were late: each level learns from
// them by the square of the part that it had in it, since a level of little part is hardly tried: a
// day of paced prompts would let that of lines drift up, unproven. Lines that live long may not
// leap: that they will be too many shows only later.
func (t *theta) spend(now time.Time, requests, late, long float64) {
	prompts, lines := t.part.mean, 1-t.part.mean
	t.prompts.spend(now, requests, late, float64(prompts*prompts), 1)
	t.lines.spend(now, requests, late, float64(lines*lines), 1-long)
}

// fix sets both for good.
func (t *theta) fix(value float64) {
	t.prompts.fix(value)
	t.lines.fix(value)
}

// promptPart is the part that prompts have in what the lines that start now cost an engine.
func (p *probe) promptPart() float64 {
	law, mix := p.fit.fitted(), p.mix.latest()
	if mix.Prompt <= 0 || mix.Output <= 0 {
		return 1
	}
	return float64(law.PromptToken(mix.Prompt)*mix.Prompt) / mix.Output / law.PerLine(mix)
}

// life is how many seconds a line runs, where an iteration takes ms.
func (*probe) life(mix costmodel.Mix, ms float64) float64 { return float64(mix.Output*ms) / 1000 }

// lag is the share of what a line does that shows only after a while, 0 to 1: much where lines live
// long.
func (p *probe) lag(life float64) float64 { return life / (life + p.cfg.Pace.Lag.Seconds()) }

// long is the lag of lines as they are, at iterations as long as they may be.
func (p *probe) long() float64 { return p.lag(p.life(p.lineMix(), p.target())) }
