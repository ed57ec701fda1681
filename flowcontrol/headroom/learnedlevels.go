package headroom

import (
	"time"
)

// learnedLevel is the value of a level.
type learnedLevel struct{ Value, Owed, Rate float64 }

func (l *learnedLevel) valid() bool {
	return within(0, maxFigure, l.Value, l.Rate) && within(-1, 1, l.Owed)
}

func (l *level) learned() learnedLevel { return learnedLevel{l.value, l.owed, l.rate} }

func (l *level) learn(of learnedLevel, trust float64) {
	if l.fixed || of.Value <= 0 {
		return
	}
	value := l.cfg.Start + trust*(of.Value-l.cfg.Start)
	l.value = min(max(value, l.cfg.Min), l.cfg.Max)
	l.owed, l.rate = trust*min(0, of.Owed), of.Rate
}

// learn takes over a limit. The less it is trusted, the more lines it permits.
func (l *lateLines) learn(of learnedLevel, trust float64) {
	if of.Value > 0 && of.Value < noLateLimit {
		l.level.value = min(of.Value/max(trust, 1e-3), noLateLimit)
		l.level.rate = of.Rate
		l.seen = trust / lateGain
	}
}

// learnedPacking is the number of runners that are packed, and the greatest number of lines on
// each. Pause is the time for which packing is paused after it has failed, and Left what is left of
// it, both in seconds.
type learnedPacking struct {
	Runners            int
	Lines, Pause, Left float64
}

func (l *learnedPacking) valid() bool {
	return within(0, maxFigure, float64(l.Runners), l.Lines, l.Pause, l.Left)
}

func (c *Controller) learnedPacking(now time.Time) learnedPacking {
	p := &c.packing
	l := learnedPacking{Pause: p.pause.Seconds(), Left: max(0, p.until.Sub(now).Seconds())}
	for _, m := range c.roster.Members {
		if r := m.State; r.packed > 0 {
			l.Runners++
			l.Lines = max(l.Lines, min(r.packed, float64(r.own.lines)))
		}
	}
	return l
}
