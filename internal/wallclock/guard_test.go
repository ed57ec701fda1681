package wallclock

import (
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"
)

// clocks simulates the wall clock and the monotonic clock of a machine.
type clocks struct {
	wall    time.Time
	elapsed time.Duration
}

func (c *clocks) read() (time.Time, time.Duration) { return c.wall, c.elapsed }

func (c *clocks) pass(d time.Duration) { c.wall, c.elapsed = c.wall.Add(d), c.elapsed+d }

func (c *clocks) jump(d time.Duration) { c.wall = c.wall.Add(d) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newTestGuard(cfg Config) (*clocks, *Guard) {
	c := &clocks{wall: noon}
	return c, newGuard(cfg, slog.New(slog.DiscardHandler), c.read)
}

func wantLag(t *testing.T, what string, g *Guard, want time.Duration) {
	t.Helper()
	if lag := g.Lag(); lag != want {
		t.Errorf("%s: expiry lags by %v, want %v", what, lag, want)
	}
}

const year = 365 * 24 * time.Hour

func TestJumpAheadIsConfirmed(t *testing.T) {
	c, g := newTestGuard(DefaultConfig())
	c.pass(time.Hour)
	wantLag(t, "an hour later", g, 0)
	c.jump(5 * time.Minute)
	wantLag(t, "after a small jump", g, 0)
	c.jump(year)
	wantLag(t, "after a large jump", g, year)
	c.pass(9 * time.Minute)
	wantLag(t, "9 minutes later", g, year)
	if want := noon.Add(time.Hour + 14*time.Minute); !g.Expiry().Equal(want) {
		t.Errorf("data expires by %v, want %v: time continues meanwhile", g.Expiry(), want)
	}
	c.jump(year)
	wantLag(t, "after another jump", g, 2*year)
	c.pass(9 * time.Minute)
	wantLag(t, "9 minutes after the other", g, 2*year)
	c.pass(time.Minute)
	wantLag(t, "confirmed", g, 0)
	c.pass(time.Hour)
	wantLag(t, "an hour later", g, 0)
}

func TestRevertedJumpExpiresNothing(t *testing.T) {
	c, g := newTestGuard(DefaultConfig())
	c.jump(year)
	wantLag(t, "after a large jump", g, year)
	c.pass(5 * time.Minute)
	c.jump(-year)
	wantLag(t, "after the jump is reverted", g, 0)
	if want := noon.Add(5 * time.Minute); !g.Expiry().Equal(want) {
		t.Errorf("data expires by %v, want %v", g.Expiry(), want)
	}
	c.jump(-year)
	wantLag(t, "after a jump back", g, 0)
	c.jump(year)
	wantLag(t, "after a jump ahead from there", g, year)
}

func TestResumeComparesWithTheStore(t *testing.T) {
	for _, test := range []struct {
		newest time.Time
		lag    time.Duration
	}{
		{time.Time{}, 0}, {noon.Add(-9 * time.Minute), 0}, {noon.Add(-year), year},
		{noon.Add(time.Minute), 0}, {noon.Add(year), 0},
	} {
		c, g := newTestGuard(DefaultConfig())
		c.pass(time.Second)
		g.Resume(test.newest)
		if test.lag > 0 {
			test.lag += time.Second
		}
		wantLag(t, test.newest.String(), g, test.lag)
		c.pass(10 * time.Minute)
		wantLag(t, test.newest.String()+", confirmed", g, 0)
	}
}

func TestWithoutConfirmation(t *testing.T) {
	c, g := newTestGuard(Config{MaxJump: time.Minute})
	c.jump(year)
	wantLag(t, "after a large jump", g, 0)
	g.Resume(noon.Add(-year))
	wantLag(t, "after a start", g, 0)
}

func TestExpiryNeverRunsAheadUnconfirmed(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		cfg := DefaultConfig()
		c, g := newTestGuard(cfg)
		held := c.elapsed // the last jump of the wall clock
		last := g.Expiry()
		for range 300 {
			step := time.Duration(random.Int64N(int64(5 * time.Minute)))
			c.pass(step)
			if random.IntN(10) == 0 {
				c.jump(time.Duration(random.Int64N(int64(4*year))) - 2*year)
				held = c.elapsed
			}
			now := g.Expiry()
			if now.After(c.wall) {
				t.Fatalf("seed %d: data expires by %v, ahead of the clock's %v", seed, now, c.wall)
			}
			if c.elapsed-held < cfg.ConfirmAfter && now.Sub(last) > step+cfg.MaxJump {
				t.Fatalf("seed %d: expiry moved by %v within %v, %v after a jump", seed, now.Sub(
					last), step, c.elapsed-held)
			}
			last = now
		}
		c.pass(cfg.ConfirmAfter)
		g.Expiry()
		c.pass(cfg.ConfirmAfter)
		wantLag(t, "at the end", g, 0)
	}
}

func TestRealClockIsTrusted(t *testing.T) {
	g := NewGuard(DefaultConfig(), slog.New(slog.DiscardHandler))
	if before, now := time.Now(), g.Expiry(); now.Before(before.Round(0)) ||
		now.Sub(before) > time.Minute {
		t.Errorf("data expires by %v, want about %v", now, before)
	}
}
