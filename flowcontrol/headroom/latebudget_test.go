package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

func TestLateBudget(t *testing.T) {
	const allowed = 0.006
	for _, test := range []struct {
		name           string
		requests, late float64
		least, most    float64
	}{
		{"nothing seen", 0, 0, 1, 1},
		{"few requests prove nothing", 100, 1, 1, 1},
		{"what bounds aim at", 1e4, 30, 1, 1},
		{"three quarters of what is allowed", 1e4, 46, 1, 1},
		{"nearly all that is allowed", 1e4, 55, 0.2, 0.9},
		{"a little more", 1e4, 62, 0, 0},
		{"all", 1e4, 1e4, 0, 0},
	} {
		b := lateBudget{allowed: allowed}
		b.read(noon, test.requests, test.late)
		if got := b.left(); got < test.least || got > test.most {
			t.Errorf("%s: %v is left, want %v to %v", test.name, got, test.least, test.most)
		}
	}
	b := lateBudget{allowed: allowed}
	now := noon
	for range 60 { // a bad minute
		now = now.Add(time.Second)
		b.read(now, 5, 0.05)
	}
	if b.left() < 1 {
		t.Errorf("after a minute with 1 %% late, %v is left", b.left())
	}
	for range 600 {
		now = now.Add(time.Second)
		b.read(now, 5, 0.05)
	}
	if b.left() > 0 {
		t.Errorf("after ten minutes more, %v is left", b.left())
	}
	stopped := now
	for b.left() < 1 {
		now = now.Add(time.Second)
		b.read(now, 5, 0)
		if now.Sub(stopped) > time.Hour {
			t.Fatal("requests in time do not restore it within an hour")
		}
	}
	if now.Sub(stopped) < 5*time.Minute {
		t.Errorf("it is restored after %v", now.Sub(stopped))
	}
}

// Where too many requests have been late, lines stop, but for those that deadlines require.
func TestSpentBudgetStopsLines(t *testing.T) {
	c, runners := newPool(t, func(c *flowcontrol.Config) { c.SLO.TTFT = time.Second }, "r")
	c.watched, c.lines = true, 20
	grant := func() flowcontrol.RunnerAllowance {
		g := flowcontrol.RunnerAllowance{}
		c.grantLines(noon, runners[0], c.poolLoad(noon), &g)
		return g
	}
	runners[0].own.lines = 20
	if g := grant(); g.Lines == 0 || g.Reason == ReasonLate {
		t.Fatalf("the grant is %+v before any request was late", g)
	}
	c.budget.read(noon, 1000, 100)
	if g := grant(); g.Lines != 0 || g.Reason != ReasonLate {
		t.Errorf("the grant is %+v, want none because of late requests", g)
	}
	c.demanded = 3
	if g := grant(); g.Lines != 3 {
		t.Errorf("the grant is %+v, want the 3 lines of the deadlines", g)
	}
	c.demanded, c.shared = 0, false
	if g := grant(); g.Lines == 0 {
		t.Errorf("the grant is %+v in a pool without users", g)
	}
}

// One line among fifty requests may make each of them late, by a long prompt.
func TestFewLinesAreCharged(t *testing.T) {
	charged := func(share float64) float64 {
		c, _ := newPool(t, nil, "r")
		now, all, late := noon, 0.0, 0.0
		for range 60 {
			now = now.Add(time.Second)
			all += 10
			late += 1
			c.ownShare.mean = share
			r := flowcontrol.NoReading(flowcontrol.Gateway, now)
			r.TTFT = flowcontrol.Attainment{Requests: all, Late: late}
			c.readGateway(now, &r)
		}
		return c.budget.late
	}
	if got := charged(0.02); got < 10 {
		t.Errorf("%.1f of 59 late requests are charged where one in fifty is a line", got)
	}
	if got := charged(0.001); got > 0 {
		t.Errorf("%.1f late requests are charged where one in a thousand is a line", got)
	}
}

// Requests are counted by their answers where nothing says how long first tokens may take.
func TestRequestsCountWithoutAnObjectiveForFirstTokens(t *testing.T) {
	for _, share := range []float64{0.001, 0.2} {
		c, _ := newPool(t, func(c *flowcontrol.Config) {
			c.SLO.TTFT, c.SLO.TPOT = 0, 50*time.Millisecond
		}, "r")
		now, all, late := noon, 0.0, 0.0
		for i := range 600 {
			now = now.Add(time.Second)
			all += 10
			if i%100 == 99 { // 0.1 %, a sixth of what may be
				late++
			}
			c.ownShare.mean = share
			r := flowcontrol.NoReading(flowcontrol.Gateway, now)
			r.TPOT = flowcontrol.Attainment{Requests: all, Late: late}
			c.readGateway(now, &r)
		}
		if c.budget.requests < 4000 || c.budget.left() < 1 {
			t.Errorf("lines are %v of the requests: %.0f of 6,000 are counted, and %v of the "+
				"lines may run, want all", share, c.budget.requests, c.budget.left())
		}
	}
}

// A pool of five minutes can't count on all of the half hour: its users may never see that.
func TestYoungPoolsSaveToo(t *testing.T) {
	b := lateBudget{allowed: 0.006}
	for s := range 301 {
		b.read(noon.Add(time.Duration(s)*time.Second), 1000./301, 12./301)
	}
	if left := b.left(); left > 0 {
		t.Errorf("12 of 1,000 requests were late in five minutes, and %v of the lines run", left)
	}
}

// What was late is forgotten within hours when its source has gone.
func TestASpentBudgetFadesWithoutReadings(t *testing.T) {
	c, _ := newPool(t, nil, "r")
	c.budget.read(noon, 1000, 12)
	if left := c.budget.left(); left > 0 {
		t.Fatalf("%v of the lines may run", left)
	}
	for s := range 2 * 3600 {
		c.Advance(noon.Add(time.Duration(s) * time.Second))
	}
	if left := c.budget.left(); left < 1 {
		t.Errorf("two hours later %v of the lines may run", left)
	}
}
