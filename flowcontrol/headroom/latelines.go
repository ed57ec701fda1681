package headroom

import (
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// lateLines limits the lines of a runner to the number at which as many interactive requests are
// late because of batch work as may be. Harm grows with the number of lines and work grows less, so
// a constant number does more work for the same harm than many lines for some minutes and then
// none, which is what the budget of late requests alone leads to.
type lateLines struct {
	level   level
	carried peak    // lines of a runner within lateWindow
	seen    float64 // late requests that have moved the limit
	// credit is the number of requests that might have been late before there was a limit.
	credit float64
	// usersAt is when requests were counted last.
	usersAt time.Time
}

const (
	// noLateLimit is the level while no request was late because of batch work.
	noLateLimit = 1e6
	// lateGain is by which share a late request lowers the limit, and lateFall the most by which
	// one reading does: late requests come in bursts.
	lateGain, lateFall = 0.04, 0.03
	// firstGain is by which share the first late request lowers the limit, which begins as a guess.
	// The next ones do so by less, the one after k others by 1/(1/firstGain+k), down to lateGain.
	// While that is more than lateGain, one reading may lower the limit by firstFall of it, and
	// raise it by firstRise of it.
	firstGain, firstFall, firstRise = 0.4, 0.5, 0.3
	// maxCredited is the greatest credit, in late requests. These do not move the limit, because
	// so many more might have been late before there was one.
	maxCredited = 1
	// lateShare is the part of slo.late at which the limit rests; the start of a pool spends some.
	lateShare = 0.8
	// lateWindow is the time over which lines count that the limit begins from. It is longer than
	// most surges: the few lines that run in one are no measure for the time after it.
	lateWindow = 5 * time.Minute
	// aboveCarried bounds a limit that late requests lower, as a multiple of the carried lines: one
	// that has risen untested would take long to fall.
	aboveCarried = 1.3
	// wellTested is the part of linesByRoom from which on the lines that run may have caused
	// whatever was late.
	wellTested = 0.04
)

func newLateLines(late float64) lateLines {
	cfg := Level{Start: noLateLimit, Min: 0.1, Max: noLateLimit, Gain: lateGain,
		MaxFall: lateFall, BudgetShare: lateShare}
	return lateLines{level: newLevel(cfg, late), carried: peak{window: lateWindow}}
}

// carry records the number of lines that a runner carries.
func (l *lateLines) carry(now time.Time, lines float64) { l.carried.add(now, lines) }

// read takes over requests, and those of them that were late because of batch work. Without a
// limit, one begins when those are as many as matter.
func (l *lateLines) read(now time.Time, requests, late float64, matter bool) {
	if requests > 0 {
		l.usersAt = now
	}
	limited := l.level.value < noLateLimit
	if late > 0 && (limited || matter) {
		tested := aboveCarried * l.carried.most(now)
		l.level.value = min(l.level.value, max(1, tested))
		limited = true
	}
	if limited {
		credited := min(late, l.credit)
		l.credit -= credited
		late -= credited
		gain := max(lateGain, 1/(1/firstGain+l.seen))
		l.level.cfg.Gain, l.level.cfg.MaxFall = gain, max(lateFall, firstFall*gain)
		l.level.rise = max(maxRise, firstRise*gain)
		l.seen += late
	} else if l.carried.most(now) > 0 {
		l.credit = min(l.credit+l.level.allowed*requests, maxCredited)
	}
	l.level.update(now, requests, late, 1) // which also learns the rate of requests
	if !limited {
		l.level.value = noLateLimit
	}
}

// chargeLate takes over interactive requests, and those of them that batch work has made late.
func (c *Controller) chargeLate(now time.Time, requests, late float64) {
	c.budget.read(now, requests, late)
	if c.outcomes.every > lateWindow {
		late = 0 // the number of lines that ran when they were late is unknown
	}
	tested := c.lateLines.carried.most(now) > wellTested*c.linesByRoom()
	c.lateLines.read(now, requests, late, tested || c.budget.matters())
}

// boundByLate lowers a grant to the lines that late requests permit on a runner. Where that is no
// whole number, as many of the runners have one line more, so that the pool has what is permitted,
// and a pool of many runners is never without any line that could show that more are harmless. The
// limit is a number of lines on runners that users are sent to, which says nothing about those that
// are packed; packing ends if users are late there.
//
// Without users no request can raise the limit, so a pool that has carried no line for a while may
// have one then.
func (c *Controller) boundByLate(now time.Time, r *runner, g *flowcontrol.RunnerAllowance) {
	most := c.lateLines.level.value
	if most >= float64(g.Lines) || !c.shared || c.target.fixed() || r.packed > 0 {
		return
	}
	lines := int(most)
	extra := int((most-float64(lines))*float64(len(c.roster.Members)) + 0.5)
	if lines == 0 && extra == 0 && c.idlesWithoutUsers(now) {
		extra = 1
	}
	if place := slices.IndexFunc(c.roster.Members, func(m *flowcontrol.Member[*runner]) bool {
		return m.State == r
	}); place < extra {
		lines++
	}
	lower(g, lines, ReasonLateLines)
}
