package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// crowd recognises a runner to which a router sends users because batch lines on the others keep
// them away. Routers that count requests do that where a runner loses its lines: long prompts of
// users delay the next lines there, or it sheds them. Then those of the others must go too, at
// once: lines run for longer than users may wait.
type crowd struct {
	on    *runner   // nil: none
	seen  time.Time // of the metrics that first showed it
	until time.Time
}

const (
	// crowdWaits is the least number of users that wait there. crowdShare is the least part of the
	// pool's users that are there.
	crowdWaits, crowdShare = 3, 0.5
	// crowdLines is the least number of lines by which it is below the mean runner.
	crowdLines = 4
	// crowdHold is the time for which the others keep to its number of lines.
	crowdHold = 10 * time.Second
)

// updateCrowd looks for such a runner.
func (c *Controller) updateCrowd(now time.Time) {
	var most *runner
	users, lines, n := 0.0, 0.0, 0.0
	for _, m := range c.roster.Members {
		r := m.State
		if r.packed > 0 || !c.recent(now, r.interactive.seenAt) {
			continue
		}
		users += r.interactive.demand
		lines += float64(r.own.lines)
		n++
		if most == nil || r.interactive.demand > most.interactive.demand {
			most = r
		}
	}
	d := &c.crowd
	if most == nil || n < 2 || most.interactive.waiting < crowdWaits ||
		most.interactive.demand < max(crowdShare, 1.5/n)*users ||
		float64(most.own.lines) > lines/n-crowdLines {
		if now.After(d.until) {
			*d = crowd{}
		}
		return
	}
	if d.on != most {
		*d = crowd{on: most, seen: most.interactive.seenAt}
		return
	}
	if most.interactive.seenAt.After(d.seen) {
		d.until = now.Add(crowdHold)
	}
}

// disperse lowers the lines of a runner to those of the one where users crowd.
func (c *Controller) disperse(now time.Time, r *runner, g *flowcontrol.RunnerAllowance) {
	d := &c.crowd
	if !c.shared || d.on == nil || d.on == r || now.After(d.until) || r.packed > 0 {
		return
	}
	most := int(c.tuning.Pace.MaxLineRatio*float64(d.on.own.lines)) + allowedLines
	if r.own.lines <= most || !c.mayWaste(r, true) {
		lower(g, most, ReasonBrake)
		return
	}
	if !g.Evict || most < g.Lines { // no more are evicted, also if fewer may start
		g.Lines = most
	}
	g.Evict, g.Reason = true, ReasonBrake
}
