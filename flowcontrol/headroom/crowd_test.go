package headroom

import (
	"testing"
	"time"
)

// crowdedPool returns a pool of three runners. On the first, as many users run and wait, and it has
// lost all lines but a few.
func crowdedPool(t *testing.T, running, waiting float64, lines int) (*Controller, []*runner) {
	c, runners := newPool(t, nil, "a", "b", "c")
	c.watched, c.lines, c.carriedAt = true, 20, noon
	for i, r := range runners {
		r.own.lines = 20
		r.interactive.demand = 1
		if i == 0 {
			r.own.lines = lines
			r.interactive.demand, r.interactive.waiting = running+waiting, waiting
		}
	}
	return c, runners
}

// showSame lets some seconds pass in which metrics show the same.
func (c *Controller) showSame(runners []*runner, seconds int) (now time.Time) {
	now = noon
	for range seconds {
		now = now.Add(time.Second)
		for _, r := range runners {
			r.interactive.seenAt = now
		}
		c.Advance(now)
	}
	return now
}

// Lines on the other runners go where users crowd on the one that has lost its lines, and only
// there.
func TestLinesLeaveWhereUsersCrowdElsewhere(t *testing.T) {
	for name, test := range map[string]struct {
		running, waiting float64
		lines, seconds   int
		evicts           bool
	}{
		"crowded":       {3, 4, 2, 2, true},
		"one reading":   {3, 4, 2, 1, false},
		"nobody waits":  {7, 0, 2, 5, false},
		"as many lines": {3, 4, 20, 5, false},
		"few wait":      {0, 2, 2, 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, runners := crowdedPool(t, test.running, test.waiting, test.lines)
			now := c.showSame(runners, test.seconds)
			grants := c.Allowance(now).Runners
			if g := grants[1]; g.Evict != test.evicts {
				t.Errorf("the grant is %+v, want evictions: %v", g, test.evicts)
			}
			if g := grants[1]; g.Evict && (g.Lines != 3 || g.Reason != ReasonBrake) {
				t.Errorf("the grant is %+v, want the lines of the other and one more", g)
			}
			if grants[0].Evict {
				t.Errorf("the grant where users crowd is %+v", grants[0])
			}
			if g := c.Allowance(now.Add(2 * crowdHold)).Runners[1]; g.Evict {
				t.Error("lines are evicted after the crowd has gone")
			}
		})
	}
}

// Where all runners have as many users, none is crowded.
func TestEvenUsersAreNoCrowd(t *testing.T) {
	c, runners := crowdedPool(t, 3, 4, 2)
	for _, r := range runners {
		r.interactive.demand = 7
	}
	now := c.showSame(runners, 5)
	if g := c.Allowance(now).Runners[1]; g.Evict {
		t.Errorf("the grant is %+v", g)
	}
}
