package headroom

import (
	"time"
)

// level is a value that late requests control: the highest at which no more than the allowed share
// of requests is late.
type level struct {
	cfg     Level
	allowed float64 // share of requests that may be late
	value   float64
	rise    float64 // the most by which one reading raises it, as a share
	// owed is the part of the moves that is still to be made.
	owed  float64
	rate  float64 // requests in a second
	at    time.Time
	fixed bool // late requests do not move the value
}

const (
	// maxRise is the most by which one reading raises a level, as a share. Without it, a level that
	// many requests move would rise by more in a calm minute than it may fall in a busy one.
	maxRise = 0.01
	// usualPeriod is the time between readings up to which one lowers a level by MaxFall at most.
	// Rarer ones lower it by as much more, up to maxPeriods times. They do not raise it faster: if
	// the rise was too much, that shows late too.
	usualPeriod, maxPeriods = 5 * time.Second, 6
	// maxOwed is the largest fall that is remembered if it could not be made at once, as a share.
	maxOwed = 0.7
	// rateWindow is the time over which the rate of requests is averaged.
	rateWindow = 5 * time.Minute
	// steadyRise is by which share a level rises in a second while nothing is late, if few requests
	// come: a third in five minutes.
	steadyRise = 0.001
	// maxGain is the most that a single late request lowers a level because few requests come, as
	// a share.
	maxGain = 0.1
)

func newLevel(cfg Level, late float64) level {
	return level{cfg: cfg, allowed: cfg.BudgetShare * late, value: cfg.Start, rise: maxRise}
}

// update moves the level by requests that were answered and those of them that were late. part is
// the share of the effect that the level is responsible for, 0 to 1.
func (l *level) update(now time.Time, requests, late, part float64) {
	if l.fixed {
		return
	}
	periods := 1.0
	if !l.at.IsZero() {
		periods = min(max(1, now.Sub(l.at).Seconds()/usualPeriod.Seconds()), maxPeriods)
	}
	fall := periods * l.cfg.MaxFall
	due := l.gain(now, requests) * (l.allowed*requests - late)
	l.owed = min(max(l.owed+due, -maxOwed), l.rise)
	move := min(max(l.owed, -fall), l.rise)
	l.owed -= move
	l.value = min(max(l.value*(1+part*move), l.cfg.Min), l.cfg.Max)
}

// gain returns by which share a late request lowers the level. Where few requests come, each says
// more, so that the level rises as fast as elsewhere.
func (l *level) gain(now time.Time, requests float64) float64 {
	if !l.at.IsZero() {
		dt := now.Sub(l.at)
		seen := requests / max(dt.Seconds(), 0.1)
		l.rate += weight(dt, rateWindow) * (seen - l.rate)
	}
	l.at = now
	if l.cfg.Gain == 0 || l.rate <= 0 {
		return l.cfg.Gain
	}
	return max(l.cfg.Gain, min(steadyRise/(l.allowed*l.rate), maxGain))
}

// fix sets the level, which then stays constant.
func (l *level) fix(value float64) { l.value, l.fixed = value, true }
