package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/portable"
)

// mixedTokens judges by how many answers were late that a gateway counts with those of batch lines,
// while the engines stand in for its first tokens: they do not count by answers how long tokens
// took. Lines that may have been late by how long they ran are taken away.
type mixedTokens struct {
	seen        lateness
	lines, late float64 // answered, and not yet taken away
}

// answered counts the answer of a line. objective is in milliseconds.
func (m *mixedTokens) answered(o flowcontrol.Observation, objective float64) {
	if o.OutputTokens < 2 {
		return // has no time between tokens
	}
	m.lines++
	if milliseconds(o.Latency) > portable.Rounded(objective*float64(o.OutputTokens)) {
		m.late++
	}
}

// users returns how many of the answers that were counted since the last reading, and of the late
// ones, are those of users.
func (m *mixedTokens) users(g *flowcontrol.Reading) (requests, late float64, ok bool) {
	requests, late, ok = m.seen.since(g.TPOT)
	if !ok {
		m.lines, m.late = 0, 0
		return 0, 0, false
	}
	ours := min(m.lines, requests)
	oursLate := min(m.late, late)
	m.lines -= ours
	m.late = min(m.late-oursLate, m.lines) // the estimate may be too high
	return requests - ours, min(late-oursLate, requests-ours), true
}

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
	charged := c.lateTokens.add(late, portable.Rounded(requests*c.quiet.tpot()))
	c.virtual.realLate += charged
	c.chargeLate(now, 0, charged)
}
