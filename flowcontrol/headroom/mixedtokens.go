package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// mixedTokens judges by the late answers that a gateway counts with those of batch lines, while the
// engines stand in for its first tokens. Engines do not count the time of tokens by answers. Lines
// that may have been late by their running time are taken away. For answers of a few tokens that is
// mostly the time of their prompt, so the number of those that are late is supposed.
type mixedTokens struct {
	seen        flowcontrol.Growth
	lines, late float64 // answered, and not yet taken away
	short       float64 // the same, of a few tokens
}

// answered counts the answer of a line. objective is in milliseconds.
func (m *mixedTokens) answered(o *flowcontrol.Answered, objective float64) {
	switch {
	case o.OutputTokens < 2: // has no time between tokens
	case o.OutputTokens < fewOutput:
		m.short++
	default:
		m.lines++
		if milliseconds(o.Latency) > objective*float64(o.OutputTokens) {
			m.late++
		}
	}
}

// users returns the number of users' answers that were counted since the last reading, and of the
// late ones among them.
func (m *mixedTokens) users(g *flowcontrol.Reading) (requests, late float64, ok bool) {
	requests, late, ok = m.seen.Since(g.TPOT)
	if !ok {
		m.lines, m.late, m.short = 0, 0, 0
		return 0, 0, false
	}
	ours, oursLate := min(m.lines, requests), min(m.late, late)
	m.lines -= ours
	m.late = min(m.late-oursLate, m.lines) // the estimate may be too high
	rest := requests - ours
	short := min(m.short, rest)
	m.short -= short
	users := rest - short
	of := users + shortLate*short
	return users, min(late-oursLate, rest) * (users / max(of, 1)), true
}

// shortLate is the supposed frequency of late answers of lines with a few tokens, as a multiple of
// that of users. The gaps of such answers meet the prompts of the next lines.
const shortLate = 4

// readMixedTokens takes over what a gateway counts that is not used for first tokens. It serves as
// a brake only: that few users seem to be late proves nothing, since those that were taken for
// lines may be users.
func (c *Controller) readMixedTokens(now time.Time, g *flowcontrol.Reading) {
	requests, late, ok := c.mixedTokens.users(g)
	if !ok || !c.mixture.mixed() || !c.enginesStandIn(now) {
		return
	}
	if c.withoutUs(now) {
		c.quiet.each.share.add(now, quietMemory, requests, late)
	}
	if c.ownShare.mean < innocentShare {
		return
	}
	charged := c.lateTokens.add(late, requests*c.quiet.tpot())
	c.virtual.realLate += charged
	c.chargeLate(now, 0, charged)
}
