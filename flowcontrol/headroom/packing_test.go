package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// routed is a pool of four runners whose iterations are known, with a router that avoids runners
// with many lines, or does not.
type routed struct {
	*Controller
	runners []*runner
	now     time.Time
	avoids  bool
}

func newRouted(t *testing.T, avoids bool) *routed {
	c, runners := newPool(t, func(c *flowcontrol.Config) { c.Engine.KVTokens = 4_000_000 },
		"a", "b", "c", "d")
	p := &routed{c, runners, noon, avoids}
	c.outcomes.at, c.lines, c.budget.requests = noon, 4, 5000
	for range 200 { // lines of long answers
		c.sizes.start(50, 0, 500, 500)
		c.sizes.answer(50, 0, 500)
	}
	for range 400 {
		p.now = p.now.Add(time.Second)
		c.alone.iteration.add(p.now, 60)
		c.alone.shares.fade(p.now)
		c.alone.shares.add(0.6, 1)
	}
	return p
}

// run lets time pass, in which each runner carries the lines that it may.
func (p *routed) run(d time.Duration) {
	for end := p.now.Add(d); p.now.Before(end); {
		p.now = p.now.Add(time.Second)
		// Those that are not packed carry the requests of the packed ones, and so fewer lines.
		few := p.lines
		if p.packing.runners > 0 {
			few--
		}
		for _, r := range p.runners {
			r.interactive.seenAt, r.interactive.running.mean = p.now, 10
			if r.own.lines = int(max(r.packed, few)); p.avoids && float64(r.own.lines) > few {
				r.interactive.running.mean = 0
			}
		}
		p.updatePacking(p.now, time.Second)
	}
}

func (p *routed) most() (lines float64) {
	for _, r := range p.runners {
		lines = max(lines, r.packed)
	}
	return lines
}

// Where the router avoids full runners, some are filled; one stays free at least.
func TestRunnersArePackedWhereTheRouterAvoidsThem(t *testing.T) {
	p := newRouted(t, true)
	p.run(packEvery)
	if n := p.packing.runners; n > 1 {
		t.Errorf("%d runners are packed at once, want one after the other", n)
	}
	p.run(20 * time.Minute)
	if n := p.packing.runners; n < 1 || n > 3 || p.most() < 100 {
		t.Errorf("%d runners are packed, with up to %.0f lines", n, p.most())
	}
}

// Where the router sends requests to runners whatever they carry, none is filled, and one that was
// filled is given up once requests come.
func TestRunnersAreNotPackedWhereTheRouterDoesNotAvoidThem(t *testing.T) {
	p := newRouted(t, false)
	if p.run(20 * time.Minute); p.most() > p.lines+2 {
		t.Errorf("%.0f lines beside the requests of a mean runner", p.most())
	}
	p = newRouted(t, true)
	if p.run(20 * time.Minute); p.most() < 100 {
		t.Fatalf("%.0f lines where the router avoids them", p.most())
	}
	p.avoids = false
	if p.run(5 * time.Minute); p.most() > p.lines+2 {
		t.Errorf("%.0f lines where requests come after all", p.most())
	}
}

// A packed pool is given up when more requests are late than without batch work, and for longer
// each time.
func TestHarmUnpacksRunners(t *testing.T) {
	p := newRouted(t, true)
	p.run(10 * time.Minute)
	for _, pause := range []time.Duration{firstPause, 2 * firstPause} {
		if p.packing.runners == 0 {
			t.Fatal("no runner is packed")
		}
		p.outcomes.recentLate = fadingShare{all: 100, some: 10, at: p.now}
		p.run(time.Second)
		if p.packing.runners > 0 || p.most() > 0 {
			t.Fatalf("%d runners are packed while a tenth is late", p.packing.runners)
		}
		p.outcomes.recentLate = fadingShare{}
		if p.run(pause - time.Minute); p.packing.runners > 0 {
			t.Errorf("a runner is packed within %v", pause)
		}
		p.run(10 * time.Minute)
	}
}

// Without recent metrics of every runner, the router is not known to avoid any.
func TestPackingNeedsReadings(t *testing.T) {
	p := newRouted(t, true)
	p.run(10 * time.Minute)
	if p.packing.runners == 0 {
		t.Fatal("no runner is packed")
	}
	p.runners[3].interactive.seenAt = p.now.Add(-time.Hour)
	p.updatePacking(p.now.Add(time.Second), time.Second)
	if p.packing.runners > 0 || p.most() > 0 {
		t.Errorf("%d runners are packed without metrics of another", p.packing.runners)
	}
}

// Where runners leave, one that is not packed is left to users.
func TestARunnerIsLeftToUsersWhenOthersLeave(t *testing.T) {
	p := newRouted(t, true)
	p.run(10 * time.Minute)
	p.packing.runners = 3
	for _, id := range []string{"c", "d"} {
		p.Observe(p.now, &flowcontrol.RunnerLeft{Runner: id})
	}
	p.runners = p.runners[:2]
	p.run(time.Second)
	if p.runners[1].packed > 0 || p.packing.runners > 1 {
		t.Errorf("%d of two runners are packed", p.packing.runners)
	}
}

// Several packed runners that are given up within minutes are one failure, and a pause ends.
func TestPausesOfPackingAreBounded(t *testing.T) {
	var p packing
	now := noon
	for packed := 8; packed > 0; packed-- {
		now = now.Add(time.Second)
		p.giveUp(now, packed-1)
	}
	if p.pause != firstPause {
		t.Errorf("after one failure packing pauses for %v, want %v", p.pause, firstPause)
	}
	for range 20 {
		p.giveUp(p.until, 0)
	}
	if p.pause != longestPause {
		t.Errorf("after many failures packing pauses for %v, want %v", p.pause, longestPause)
	}
}
