package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Engines count the answers of batch lines with those of users.
func TestVisitsAreUsersOnly(t *testing.T) {
	count := func(n float64) []flowcontrol.Bucket {
		return []flowcontrol.Bucket{{Upper: 10, Count: n}}
	}
	var v visits
	v.read(count(100), count(160), 50)
	v.read(count(160), count(165), 0)
	if v.count != 15 || !v.shown {
		t.Errorf("%v visits, shown %v, want 15", v.count, v.shown)
	}
	v.read(count(165), count(3), 0) // the engine has started again
	if v.count != 15 {
		t.Errorf("%v visits after a restart, want 15", v.count)
	}
	if v.read(nil, nil, 0); v.shown {
		t.Error("visits are shown without a histogram")
	}
}

// Short answers run at no reading, but they are counted: a runner that the router does not avoid is
// given up though its gauges show no users.
func TestAnsweredUsersEndPacking(t *testing.T) {
	for _, avoids := range []bool{true, false} {
		p := newRouted(t, true)
		for end := p.now.Add(20 * time.Minute); p.now.Before(end); {
			for _, r := range p.runners {
				r.answered.shown = true
				if !avoids || r.packed == 0 {
					r.answered.count += 0.2
					p.usersAnswered += 0.2
				}
			}
			p.run(time.Second)
		}
		if packed := p.packing.runners > 0; packed != avoids {
			t.Errorf("router avoids full runners: %v; %d are packed", avoids, p.packing.runners)
		}
	}
}

// A runner is not filled while more users run there than may be late.
func TestBusyRunnersAreNotFilled(t *testing.T) {
	p := newRouted(t, true)
	p.budget.requests = 500
	if p.run(10 * time.Minute); p.packing.runners > 0 {
		t.Errorf("%d runners are filled beside ten users of 500", p.packing.runners)
	}
}

// Where a few of many users come to a full runner, those few are late, so it counts as visited.
func TestFewOfManyAreVisits(t *testing.T) {
	for _, test := range []struct {
		came float64
		want bool
	}{{40, true}, {20, false}} {
		c, runners := newPool(t, nil, "a", "b")
		for _, r := range runners {
			r.answered.shown = true
		}
		c.beginStay(runners[0])
		runners[0].answered.count, c.usersAnswered = test.came, test.came+1000
		if s := c.stay(runners[0]); s.visited() != test.want {
			t.Errorf("%v of %v users came: visited is %v", test.came, 2*s.even, s.visited())
		}
	}
}

// A runner that leaves takes its users' answers with it, not those of the pool.
func TestLeavingRunnersAreNoVisits(t *testing.T) {
	c, runners := newPool(t, nil, "a", "b", "c")
	runners[2].answered.count, c.usersAnswered = 5000, 5000
	c.beginStay(runners[0])
	c.leave("c")
	if s := c.stay(runners[0]); s.visited() || s.even != 0 {
		t.Errorf("visited is %v, and %v would have come evenly", s.visited(), s.even)
	}
}
