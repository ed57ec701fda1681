package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/costmodel"
)

// poolLoad is what the pool's runners carry of batch work, as far as they may be compared. Runners
// must stay alike: a router that considers load sends interactive requests to runners with fewer
// lines, where they then meet each other.
type poolLoad struct {
	least     *runner // with the fewest lines
	lines     float64 // of that one; infinite without one
	nextLines float64 // the fewest of the others
	context   float64 // the fewest KV tokens of lines on a runner
	meanLines float64
	// mayStart is whether prompts have not used up their share of the pool's time.
	mayStart bool
}

func (c *Controller) poolLoad(now time.Time) poolLoad {
	load := poolLoad{lines: math.Inf(1), nextLines: math.Inf(1), context: math.Inf(1)}
	budget, n := 0.0, 0.0
	for _, m := range c.roster.Members {
		r := m.State
		if r.packed > 0 || r.breaksLines() {
			continue
		}
		if r.comparable(m.Held(now)) {
			lines := float64(r.own.lines)
			if !c.target.fixed() { // else a schedule says what may run at each moment
				lines = max(lines, r.carried.mean)
			}
			load.add(r, lines)
		}
		load.meanLines += float64(r.own.lines)
		budget += float64(r.budget)
		n++
	}
	load.meanLines /= max(n, 1)
	load.mayStart = budget > 0 || !c.limitsPrompts()
	return load
}

func (l *poolLoad) add(r *runner, lines float64) {
	if lines < l.lines {
		l.least, l.lines, l.nextLines = r, lines, l.lines
	} else {
		l.nextLines = min(l.nextLines, lines)
	}
	l.context = min(l.context, r.own.context)
}

// carriedAs is the time over which the lines of a runner are averaged to compare them with those of
// others. Where prompts may take a small part of the time, runners start few lines, and one of them
// often has none for a moment.
const carriedAs = 30 * time.Second

const (
	// allowedLines and allowedContext are the differences between runners that are always allowed,
	// the latter in lines' worth of context: the sizes of a few lines vary too much for equal load.
	allowedLines, allowedContext = 1, 8
)

// bound returns the greatest number of lines on a runner with which its load stays similar to that
// of others. A router that balances by load considers the KV tokens of lines, and a line that has
// run for longer holds more of them. While a runner's lines hold much more than those of another,
// no more lines start on it.
func (l poolLoad) bound(r *runner, mix costmodel.Mix, cfg Pace) float64 {
	others := l.lines
	if r == l.least {
		others = l.nextLines
	}
	most := cfg.MaxLineRatio*others + allowedLines
	if r.own.context > cfg.MaxContextRatio*l.context+
		allowedContext*mix.Context {
		most = min(most, float64(r.own.lines))
	}
	return most
}

// fallsBehind reports whether a runner may start a prompt at once because it keeps the others from
// starting lines. Its iterations may be long because of interactive requests, which would then all
// go to it. Other runners start fewer prompts instead.
func (l poolLoad) fallsBehind(r *runner, cfg Pace) bool {
	most := cfg.MaxLineRatio*float64(r.own.lines) + allowedLines
	return r.packed == 0 && r.own.prefilling == 0 && l.mayStart && most <= l.meanLines
}
