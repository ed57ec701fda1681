// Package wallclock decides by which time files, uploads and batches expire, so that a jump of the
// wall clock deletes nothing.
//
// A wall clock can be wrong: a battery is empty, a virtual machine resumes, an operator mistypes a
// date. Data that expired by a wrong time is lost. Therefore a jump ahead takes effect only after
// the clock has kept its new time for a while, measured by the monotonic clock; until then expiry
// continues as if there had been no jump. A jump back takes effect at once, because less data has
// expired then.
package wallclock

import (
	"log/slog"
	"sync"
	"time"
)

// Config limits the trust in the wall clock. The daemon uses DefaultConfig.
type Config struct {
	// MaxJump is the longest time that the wall clock may move ahead, against the monotonic clock
	// or since the newest time in the store at a start. After a longer jump, expiry waits for
	// confirmation.
	MaxJump time.Duration
	// ConfirmAfter is the time for which a clock that jumped must keep its new time before things
	// expire by it. 0: at once.
	ConfirmAfter time.Duration
}

// DefaultConfig trusts jumps of up to ten minutes at once, more than a clock drifts before it is
// set, and longer ones after ten minutes, in which an operator can correct a wrong date.
func DefaultConfig() Config {
	return Config{MaxJump: 10 * time.Minute, ConfirmAfter: 10 * time.Minute}
}

// Guard delays the time of expiry while a jump of the wall clock is not confirmed. It may be used
// concurrently.
type Guard struct {
	cfg  Config
	log  *slog.Logger
	read func() (wall time.Time, elapsed time.Duration)

	mu sync.Mutex
	// origin is the trusted wall clock at elapsed zero.
	origin time.Time
	// unconfirmed is the origin after a jump that is not confirmed. Zero: there is none.
	unconfirmed time.Time
	since       time.Duration // when unconfirmed was first read
}

// NewGuard returns a guard that trusts the current wall clock.
func NewGuard(cfg Config, log *slog.Logger) *Guard {
	start := time.Now()
	return newGuard(cfg, log, func() (time.Time, time.Duration) {
		now := time.Now()
		// Round removes the monotonic reading, which Sub would use.
		return now.Round(0), now.Sub(start)
	})
}

func newGuard(cfg Config, log *slog.Logger, read func() (time.Time, time.Duration)) *Guard {
	wall, elapsed := read()
	return &Guard{cfg: cfg, log: log.With("component", "clock"), read: read,
		origin: wall.Add(-elapsed)}
}

// Resume compares the wall clock with the newest time in the store, which an earlier process wrote.
// Zero: there is none. Call it once, at the start.
func (g *Guard) Resume(newest time.Time) {
	if newest.IsZero() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	wall, elapsed := g.read()
	switch ahead := wall.Sub(newest); {
	case ahead > g.cfg.MaxJump:
		g.origin = newest.Add(-elapsed)
	case ahead < -g.cfg.MaxJump:
		g.log.Warn(
			"the clock is behind the newest time in the store; check the clock: until it is "+
				"right, "+
				"data expires late",
			"now", wall, "newest", newest)
	}
}

// Expiry returns the time by which files, uploads and batches expire.
func (g *Guard) Expiry() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	wall, elapsed := g.read()
	if g.cfg.ConfirmAfter == 0 {
		return wall
	}
	return g.update(wall, elapsed)
}

// Lag returns the time by which Expiry is behind the wall clock. It is above zero while a jump is
// not confirmed.
func (g *Guard) Lag() time.Duration {
	wall, _ := g.read()
	return max(0, wall.Sub(g.Expiry()))
}

// update applies new readings of both clocks and returns the time of expiry.
func (g *Guard) update(wall time.Time, elapsed time.Duration) time.Time {
	origin := wall.Add(-elapsed)
	ahead := origin.Sub(g.origin)
	if ahead <= g.cfg.MaxJump {
		if !g.unconfirmed.IsZero() || ahead < -g.cfg.MaxJump {
			g.log.Warn("the clock moved back", "now", wall, "by", max(-ahead, g.unconfirmed.Sub(
				origin)))
		}
		g.origin, g.unconfirmed = origin, time.Time{}
		return wall
	}
	if moved := origin.Sub(g.unconfirmed); g.unconfirmed.IsZero() || moved.Abs() > g.cfg.MaxJump {
		g.unconfirmed, g.since = origin, elapsed
		g.log.Warn(
			"the clock jumped ahead, or the process did not run; files, uploads and batches "+
				"expire "+
				"by the earlier time until the new one is confirmed",
			"now", wall, "by", ahead.Round(time.Second), "confirm_after", g.cfg.ConfirmAfter)
	}
	if elapsed-g.since < g.cfg.ConfirmAfter {
		return g.origin.Add(elapsed)
	}
	g.log.Info("the new time of the clock is confirmed; data expires by it", "now", wall,
		"by", ahead.Round(time.Second))
	g.origin, g.unconfirmed = origin, time.Time{}
	return wall
}
