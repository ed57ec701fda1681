package flowcontrol

import (
	"math"
	"time"
)

// Knowledge is how well a runner is known.
//
//	        something seen                 nothing for Soft           nothing for Hard
//	FRESH ◄────────────────── any    FRESH ───────────────► AGING ───────────────► BLIND
//	any ── Dark lines broken in a row ──► DARK          a pool without runners is EMPTY
type Knowledge uint8

// The states, from the best.
const (
	Fresh Knowledge = iota + 1
	Aging           // nothing rises
	Blind           // the lines shrink to a small share
	Dark            // one line every now and then
	Empty           // no runner
)

func (k Knowledge) String() string {
	return [...]string{"", "fresh", "aging", "blind", "dark", "empty"}[k]
}

// doubt is what is made of silence: it shrinks the allowance slowly, and gives it back slowly.
type doubt struct {
	state   Knowledge
	seen    time.Time // something of the runner
	broken  int       // lines in a row
	retry   time.Time // when a dark runner may be tried
	ceiling float64   // lines at most; infinite in FRESH, once that has lasted
	good    float64   // lines, when it was last FRESH
	samples int       // seen since it is FRESH again
}

// recovered is how many times something must be seen before the ceiling rises.
const recovered = 3

// see takes note of something that was true at a time.
func (d *doubt) see(at time.Time) {
	if at.After(d.seen) {
		d.seen = at
	}
	d.broken = 0
	d.samples++
}

// lineBroke takes note of a line that got no answer.
func (d *doubt) lineBroke(now time.Time, cfg DoubtConfig) {
	d.broken++
	if d.broken >= cfg.Dark {
		d.retry = now.Add(cfg.Retry)
	}
}

// pass lets time go by. lines is what feedback would grant.
func (d *doubt) pass(now time.Time, dt time.Duration, lines float64, cfg DoubtConfig) {
	was := d.state
	switch age := now.Sub(d.seen); {
	case d.broken >= cfg.Dark:
		d.state = Dark
	case age > cfg.Hard:
		d.state = Blind
	case age > cfg.Soft:
		d.state = Aging
	default:
		d.state = Fresh
	}
	if was == Fresh && d.state != Fresh {
		d.good, d.samples = min(lines, d.ceiling), 0
		d.ceiling = d.good
	}
	switch {
	case d.state == Blind:
		d.ceiling = max(1, d.blind(cfg),
			float64(d.ceiling*max(0, 1-float64(0.7*float64(dt)/float64(cfg.Half)))))
	case d.state == Fresh && d.samples >= recovered:
		d.ceiling = max(1, d.ceiling) * (1 + float64(cfg.Recover*dt.Seconds()))
		if d.ceiling >= lines {
			d.ceiling = math.Inf(1)
		}
	}
}

// blind is how many lines remain in the end.
func (d *doubt) blind(cfg DoubtConfig) float64 { return float64(cfg.Blind * d.good) }

// bound is how many lines doubt leaves, and the name of the doubt.
func (d *doubt) bound(now time.Time) (lines float64, why Reason) {
	switch d.state {
	case Dark:
		if now.Before(d.retry) {
			return 0, ReasonDark
		}
		return 1, ReasonDark
	case Blind:
		return d.ceiling, ReasonBlind
	}
	return d.ceiling, ReasonAging
}
