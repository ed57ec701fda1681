package headroom

import (
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// level is a value that late requests control: the highest at which no more than the allowed share
// of requests is late.
type level struct {
	cfg     Level
	allowed float64 // share of requests that may be late
	value   float64
	// owed is the part of the moves that is still to be made.
	owed float64

	// recent is the share of the requests within riseWindow that were late.
	recent fadingShare
	fixed  bool // late requests do not move the value
}

const (
	// riseWindow is the time over which requests show that a level is far too low.
	riseWindow = 5 * time.Minute
	// riseBelow is the part of the allowed late requests below which the level is far too low. At
	// the right level, so few occur by chance in one of a hundred cases.
	riseBelow = 0.35
	// maxRise is the most by which one reading raises a level, as a share. Without it, a level that
	// many requests move would rise by more in a calm minute than it may fall in a busy one.
	maxRise = 0.01
	// mostOwed is how much of a fall that could not be made at once is remembered.
	mostOwed = 2
)

func newLevel(cfg Level, late float64) level {
	return level{cfg: cfg, allowed: cfg.BudgetShare * late, value: cfg.Start}
}

// update moves the level by requests that were answered and those of them that were late. part is
// the share of the effect that the level is responsible for, haste the share of a fast rise that it
// may take, both 0 to 1.
func (l *level) update(now time.Time, requests, late, part, haste float64) {
	if l.fixed {
		return
	}
	l.recent.add(now, riseWindow, requests, late)
	due := portable.Rounded(l.cfg.Gain * (portable.Rounded(l.allowed*requests) - late))
	l.owed = min(max(l.owed+due, -mostOwed), maxRise)
	move := min(max(l.owed, -l.cfg.MaxFall), maxRise)
	l.owed -= move
	if late == 0 && l.recent.some+1 < riseBelow*(l.allowed*l.recent.all) {
		move *= 1 + portable.Rounded((l.cfg.FastRise-1)*haste)
	}
	l.value = min(max(l.value*(1+portable.Rounded(part*move)), l.cfg.Min), l.cfg.Max)
}

// fix sets the level, which then stays constant.
func (l *level) fix(value float64) { l.value, l.fixed = value, true }
