package headroom

import (
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// level is a value that late requests control: the highest at which no more than the allowed share
// of requests is late. Its rest value moves slowly. While more requests than allowed are late, the
// value is eased below that at once.
type level struct {
	cfg     Level
	allowed float64 // share of requests that may be late
	rest    float64

	// Requests within Window, and those of them that were late; both fade.
	requests, late float64
	// The same within riseWindow.
	longRequests, longLate float64

	at    time.Time
	fixed bool // late requests do not move the value
}

const (
	// riseWindow is the time over which requests show that a level is far too low.
	riseWindow = 5 * time.Minute
	// riseBelow is the part of the allowed late requests below which the level is far too low. At
	// the right level, so few occur by chance in one of a hundred cases.
	riseBelow = 0.35
)

func newLevel(cfg Level, late float64) level {
	return level{cfg: cfg, allowed: cfg.BudgetShare * late, rest: cfg.Start}
}

// update moves the level by requests that were answered and those of them that were late. part is
// the share of the effect that the level is responsible for, haste the share of a fast rise that it
// may take, both 0 to 1.
func (l *level) update(now time.Time, requests, late, part, haste float64) {
	if l.fixed {
		return
	}
	if !l.at.IsZero() {
		fade := 1 - weight(now.Sub(l.at), l.cfg.Window)
		l.requests *= fade
		l.late *= fade
		fade = 1 - weight(now.Sub(l.at), riseWindow)
		l.longRequests *= fade
		l.longLate *= fade
	}
	l.at = now
	l.requests += requests
	l.late += late
	l.longRequests += requests
	l.longLate += late
	move := max(l.cfg.Gain*(portable.Rounded(l.allowed*requests)-late), -l.cfg.MaxFall)
	if late == 0 && l.longLate+1 < riseBelow*(l.allowed*l.longRequests) {
		move *= 1 + portable.Rounded((l.cfg.FastRise-1)*haste)
	}
	l.rest = min(max(l.rest*(1+portable.Rounded(part*move)), l.cfg.Min), l.cfg.Max)
}

// lateShare returns the share of the recent requests that were late. It adds 1/allowed requests
// that were in time, since a single late request is no evidence.
func (l *level) lateShare() float64 { return l.late / (l.requests + 1/l.allowed) }

// fix sets the level, which then stays constant.
func (l *level) fix(value float64) { l.rest, l.fixed = value, true }

// value returns the level as it is now.
func (l *level) value() float64 {
	if l.fixed {
		return l.rest
	}
	beyond := max(0, l.lateShare()/l.allowed-1)
	return max(l.rest*(1-min(l.cfg.Ease*beyond, l.cfg.MaxEase)), l.cfg.Min)
}
