package headroom

import (
	"math"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// gateway reports requests to a controller, a second later with each call.
type gateway struct {
	*Controller
	now    time.Time
	counts [4]float64 // first tokens within 1 s, 2 s, 4 s, all
}

var firstTokenEdges = [4]float64{1, 2, 4, math.Inf(1)}

// report counts so many more requests with their first tokens within a second, and others within
// four.
func (g *gateway) report(soon, late float64) {
	g.now = g.now.Add(time.Second)
	r := flowcontrol.NoReading(flowcontrol.Gateway, g.now)
	for i, n := range []float64{soon, soon, soon + late, soon + late} {
		g.counts[i] += n
		r.FirstTokenTimes = append(r.FirstTokenTimes,
			flowcontrol.Bucket{Upper: firstTokenEdges[i], Count: g.counts[i]})
	}
	r.TTFT = flowcontrol.Attained(r.FirstTokenTimes, g.slo.TTFT.Seconds())
	r.TPOT = flowcontrol.Attainment{Requests: g.counts[3]}
	g.Observe(g.now, &flowcontrol.Read{Reading: &r})
}

func newGateway(t *testing.T) *gateway {
	c, _ := newPool(t, nil, "r")
	return &gateway{Controller: c, now: noon}
}

// Requests that are late without batch work are not charged when it runs.
func TestLatenessOfTheQuietPoolIsNotCharged(t *testing.T) {
	level := func(quiet float64) float64 {
		c, _ := newPool(t, nil, "r")
		now, all, late := noon, 0.0, 0.0
		for i := range 400 {
			now = now.Add(time.Second)
			all += 10
			if i < 200 {
				late += 10 * quiet
			} else { // lines run, and a twentieth is late
				late += 0.5
				c.carriedAt, c.ownShare.mean = now, 0.5
			}
			r := flowcontrol.NoReading(flowcontrol.Gateway, now)
			r.TTFT = flowcontrol.Attainment{Requests: all, Late: late}
			c.readGateway(now, &r)
		}
		return c.promptTokens.value / c.tuning.PromptTokens.Start
	}
	if sound, slow := level(0), level(0.05); sound > 0.5 || slow < 0.95 {
		t.Errorf("the prompt tokens went to %v where lateness is new, to %v where it is not", sound,
			slow)
	}
}

// A pool whose prefix cache was cold in the quiet time does better with lines later: that is what
// it does without them at most, also where its gateway only counts.
func TestAColdQuietTimeShowsLittle(t *testing.T) {
	c, _ := newPool(t, nil, "r")
	now, all, late := noon, 0.0, 0.0
	for i := range 400 {
		now = now.Add(time.Second)
		all += 10
		if i < 60 {
			late += 1.1
		} else {
			late += 0.05
		}
		if i > 20 {
			c.carriedAt, c.ownShare.mean = now, 0.5
		}
		r := flowcontrol.NoReading(flowcontrol.Gateway, now)
		r.TTFT = flowcontrol.Attainment{Requests: all, Late: late}
		c.readGateway(now, &r)
	}
	if got := c.quiet.ttft(); got > 0.03 {
		t.Errorf("a share of %v is late without lines, but 0.005 with them", got)
	}
}

// An objective that the pool misses by itself is not the one that its users can be promised.
func TestFirstObjectiveOfASlowPool(t *testing.T) {
	for _, test := range []struct {
		name       string
		soon, late float64
		least      time.Duration
	}{
		{"in time", 20, 0, 2 * time.Second},
		{"a tenth late", 18, 2, 3 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := newGateway(t)
			for range 20 {
				g.report(test.soon, test.late)
			}
			if got := g.firstObjective(); got < test.least || got > 5*time.Second ||
				test.late == 0 && got != g.slo.TTFT {
				t.Errorf("the objective is %v", got)
			}
			if got := g.quiet.ttft(); got > 0.02 {
				t.Errorf("a share of %v misses even that without batch work", got)
			}
		})
	}
	// What comes late while batch lines run shows nothing about the pool alone.
	g := newGateway(t)
	for range 20 {
		g.carriedAt = g.now
		g.report(10, 10)
	}
	if got := g.firstObjective(); got != g.slo.TTFT {
		t.Errorf("the objective is %v because batch work made requests late", got)
	}
}

// A new pool is watched until it is known, and never for long.
func TestWatching(t *testing.T) {
	lines := func(c *Controller, now time.Time) int { return c.Allowance(now).Runners[0].Lines }
	c, _ := newPool(t, nil, "r")
	if lines(c, noon.Add(firstReading-tick)) > 0 || lines(c, noon.Add(firstReading)) == 0 {
		t.Error("a pool without a gateway is watched for some seconds")
	}
	g := newGateway(t)
	g.report(1, 0)
	for g.now.Before(noon.Add(minQuiet)) {
		g.report(2.5, 0)
	}
	if lines(g.Controller, g.now) > 0 {
		t.Errorf("lines start after 50 requests, want %d", quietRequests)
	}
	for range 6 {
		g.report(2.5, 0)
	}
	if lines(g.Controller, g.now) == 0 {
		t.Errorf("no line starts after 65 requests, want %d", quietRequests)
	}
	g = newGateway(t)
	for range 10 {
		g.report(100, 0)
	}
	if lines(g.Controller, g.now) > 0 {
		t.Errorf("lines start after %v, want %v", g.now.Sub(noon), minQuiet)
	}
	g = newGateway(t)
	for range 61 { // a request each quarter of a minute
		g.report(0.05, 0)
	}
	if lines(g.Controller, g.now) == 0 {
		t.Errorf("no line starts after %v", g.now.Sub(noon))
	}
	g = newGateway(t)
	for range 6 {
		g.report(1, 0)
	}
	silent := g.now.Add(firstReading)
	if lines(g.Controller, silent.Add(-tick)) > 0 || lines(g.Controller, silent) == 0 {
		t.Error("a gateway that has fallen silent is waited for some seconds")
	}
	if g.now = silent; !g.watched {
		t.Error("the pool is still watched")
	}
	g.report(1, 0)
	if lines(g.Controller, g.now) == 0 {
		t.Error("a gateway that speaks again ends the lines that run")
	}
	c, _ = newPool(t, func(c *flowcontrol.Config) { c.Shared = false }, "r")
	if lines(c, noon) == 0 {
		t.Error("a pool without users is watched")
	}
}

// The time that a pool is watched counts up to the longest that it may take, and is 0 after it.
// Asking for it ends nothing.
func TestTheWatchIsCountedDown(t *testing.T) {
	watched := func(c *Controller, now time.Time) [2]float64 {
		var times [2]float64
		for _, term := range c.Explain(now) {
			switch term.Name {
			case flowcontrol.TermWatched:
				times[0] = term.Value
			case flowcontrol.TermWatching:
				times[1] = term.Value
			}
		}
		return times
	}
	c, _ := newPool(t, nil, "r")
	if got := watched(c, noon.Add(2*time.Second)); got != [2]float64{2, 5} {
		t.Errorf("without users: %v, want 2 of 5 seconds", got)
	}
	if got := watched(c, noon.Add(firstReading)); got != [2]float64{} {
		t.Errorf("after the watch: %v", got)
	}
	g := newGateway(t)
	for range 6 {
		g.report(1, 0)
	}
	if got, want := watched(g.Controller, g.now), g.now.Sub(noon).Seconds(); got !=
		[2]float64{want, 60} {
		t.Errorf("with a gateway: %v, want %v of 60 seconds", got, want)
	}
	silent := g.now.Add(firstReading)
	if got := watched(g.Controller, silent); got != [2]float64{} || g.watched {
		t.Errorf("a silent gateway: %v; ended by the question: %v", got, g.watched)
	}
}

// While the quiet pool still shows what objective it can keep, requests count with each.
func TestRequestsCountWhileTheObjectiveMoves(t *testing.T) {
	g := newGateway(t)
	g.budget.late = 50
	for i := range 300 {
		g.report(18, 2+float64(i%3)) // 98.5 % of the first tokens take a little longer, or less
	}
	if g.objective <= g.slo.TTFT {
		t.Fatalf("the objective is %v, want more than %v", g.objective, g.slo.TTFT)
	}
	if got, want := g.budget.requests, 5000.0; got < want {
		t.Errorf("%v requests count, want %v or more", got, want)
	}
}

// Lines that have run may look like interactive requests, so they are no reason to watch a pool.
func TestOwnLinesAreNotWatched(t *testing.T) {
	for _, ran := range []bool{false, true} {
		c, runners := newPool(t, nil, "r")
		runners[0].interactive.running.mean = 1
		if ran {
			c.carriedAt = noon.Add(firstReading)
		}
		if got := c.watching(noon.Add(firstReading)); got == ran {
			t.Errorf("lines have run: %v, the pool is watched: %v", ran, got)
		}
	}
}

// A single slow request among the first ones does not change the objective.
func TestOneSlowRequestKeepsTheObjective(t *testing.T) {
	g := newGateway(t)
	g.report(0, 1)
	for range 12 {
		g.report(5, 0)
	}
	if got := g.firstObjective(); got != g.slo.TTFT {
		t.Errorf("the objective is %v, want %v", got, g.slo.TTFT)
	}
}

// Behind a gateway, what engines count once a line has run may be that line.
func TestLinesBehindAGatewayAreNotWatched(t *testing.T) {
	for access, want := range map[flowcontrol.Access]bool{
		flowcontrol.Direct: true, flowcontrol.Routed: false,
	} {
		c, runners := newPool(t, nil, "r")
		runners[0].access = access
		c.began, c.carriedAt = noon, noon.Add(6*time.Second)
		c.source.of, c.outcomes.at = flowcontrol.Metrics, noon.Add(8*time.Second)
		if got := c.watching(noon.Add(9 * time.Second)); got != want {
			t.Errorf("access %v: watching is %v, want %v", access, got, want)
		}
	}
}
