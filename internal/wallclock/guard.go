// Package wallclock decides by which time files, uploads and batches expire, so that a wall clock
// that jumps deletes nothing.
//
// A wall clock is set wrong now and then: a battery is empty, a virtual machine wakes up, somebody
// mistypes a date. What was removed by such a time stays removed. So a jump ahead counts only once
// it has held for a while, by the monotonic clock; until then things expire as if there had been
// none. A jump back counts at once, as less has expired then.
package wallclock

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Config limits the trust in the wall clock. Start from DefaultConfig.
type Config struct {
	Tuning `yaml:"tuning"`
}

// Tuning holds the constants of the check of the wall clock.
type Tuning struct {
	// MaxJump sets by how much the wall clock may move ahead, against the monotonic clock or since
	// the newest time in the store at a start, before expiry of files, uploads and batches waits
	// for confirmation. It protects data from a clock that is set wrong. At least 1s. Default: 10m.
	MaxJump time.Duration `yaml:"max_jump"`
	// ConfirmAfter sets how long a clock that jumped must keep its new time before things expire by
	// it. 0: at once. Default: 10m.
	ConfirmAfter time.Duration `yaml:"confirm_after"`
}

// DefaultConfig trusts jumps of up to ten minutes at once, and longer ones after ten minutes.
func DefaultConfig() Config {
	return Config{Tuning{MaxJump: 10 * time.Minute, ConfirmAfter: 10 * time.Minute}}
}

// Validate reports a value that is out of range.
func (c Config) Validate() error {
	if c.MaxJump < time.Second {
		return fmt.Errorf("tuning.max_jump is %v; set it to 1s or more", c.MaxJump)
	}
	if c.ConfirmAfter < 0 {
		return fmt.Errorf("tuning.confirm_after is %v; set it to 0 or more", c.ConfirmAfter)
	}
	return nil
}

// Guard holds back the time by which things expire while a jump of the wall clock isn't confirmed.
// It may be used concurrently.
type Guard struct {
	cfg  Config
	log  *slog.Logger
	read func() (wall time.Time, elapsed time.Duration)

	mu sync.Mutex
	// origin is what the trusted wall clock showed when elapsed was zero.
	origin time.Time
	// While a jump isn't confirmed, doubted is the origin of the time after it, and since is when
	// it was first seen.
	doubted time.Time // zero: the clock is trusted
	since   time.Duration
}

// NewGuard returns a guard that trusts the wall clock as it is now.
func NewGuard(cfg Config, log *slog.Logger) *Guard {
	start := time.Now()
	return newGuard(cfg, log, func() (time.Time, time.Duration) {
		now := time.Now()
		// Round takes off the monotonic reading, by which Sub measures
		return now.Round(0), now.Sub(start)
	})
}

func newGuard(cfg Config, log *slog.Logger, read func() (time.Time, time.Duration)) *Guard {
	wall, elapsed := read()
	return &Guard{cfg: cfg, log: log.With("component", "clock"), read: read,
		origin: wall.Add(-elapsed)}
}

// Resume compares the wall clock with the newest time that an earlier process stored; zero: there
// is none. It is called once, at the start.
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
			"the clock is behind the newest time in the store; nothing expires before the clock says so: check it",
			"now", wall, "newest", newest)
	}
}

// Expiry returns the time by which files, uploads and batches expire now.
func (g *Guard) Expiry() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	wall, elapsed := g.read()
	if g.cfg.ConfirmAfter == 0 {
		return wall
	}
	return g.judge(wall, elapsed)
}

// Lag is by how much Expiry is behind the wall clock; above zero while a jump isn't confirmed.
func (g *Guard) Lag() time.Duration {
	wall, _ := g.read()
	return max(0, wall.Sub(g.Expiry()))
}

// judge returns the time to expire by, given both clocks.
func (g *Guard) judge(wall time.Time, elapsed time.Duration) time.Time {
	origin := wall.Add(-elapsed)
	ahead := origin.Sub(g.origin)
	if ahead <= g.cfg.MaxJump {
		if !g.doubted.IsZero() || ahead < -g.cfg.MaxJump {
			g.log.Warn("the clock moved back", "now", wall, "by", max(-ahead, g.doubted.Sub(
				origin)))
		}
		g.origin, g.doubted = origin, time.Time{}
		return wall
	}
	if moved := origin.Sub(g.doubted); g.doubted.IsZero() || moved.Abs() > g.cfg.MaxJump {
		g.doubted, g.since = origin, elapsed
		g.log.Warn(
			"the clock is ahead of what was seen last: it moved, or nothing ran; files, uploads and batches expire by the earlier time until that has held",
			"now", wall, "by", ahead.Round(time.Second), "confirm_after", g.cfg.ConfirmAfter)
	}
	if elapsed-g.since < g.cfg.ConfirmAfter {
		return g.origin.Add(elapsed)
	}
	g.log.Info("the clock has held since it moved ahead; things expire by it again", "now", wall,
		"by", ahead.Round(time.Second))
	g.origin, g.doubted = origin, time.Time{}
	return wall
}
