package headroom

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// timed reports requests without an objective to a controller: how long their first tokens and
// their other tokens take, in seconds.
type timed struct {
	*Controller
	now           time.Time
	first, tokens []flowcontrol.Bucket
}

func newTimed(t *testing.T) *timed {
	c, _ := newPool(t, func(c *flowcontrol.Config) { c.SLO.TTFT, c.SLO.TPOT = 0, 0 }, "r")
	return &timed{Controller: c, now: noon,
		first: []flowcontrol.Bucket{{Upper: 1}, {Upper: 2}, {Upper: 4}, {Upper: math.Inf(1)}},
		tokens: []flowcontrol.Bucket{{Upper: 0.02}, {Upper: 0.04}, {Upper: 0.08},
			{Upper: math.Inf(1)}}}
}

// report counts requests, a second later: first tokens within 1 s and within 4 s, the tokens of as
// many answers within 20 ms, and 80 ms.
func (g *timed) report(soon, late, fast, slow float64) {
	g.now = g.now.Add(time.Second)
	r := flowcontrol.NoReading(flowcontrol.Gateway, g.now)
	count := func(into []flowcontrol.Bucket, early, late float64) []flowcontrol.Bucket {
		for i, n := range []float64{early, early, early + late, early + late} {
			into[i].Count += n
		}
		return append([]flowcontrol.Bucket(nil), into...)
	}
	r.FirstTokenTimes, r.TokenTimes = count(g.first, soon, late), count(g.tokens, fast, slow)
	r.Requests = g.first[3].Count
	g.Observe(g.now, &flowcontrol.Read{Reading: &r})
}

// Without an objective, requests are late that take longer than nearly all do without batch work.
func TestWithoutAnObjectiveSlowRequestsAreLate(t *testing.T) {
	for name, test := range map[string]struct{ late, slow, want float64 }{
		"none": {}, "first tokens": {late: 1, want: 60}, "tokens": {slow: 1, want: 60},
	} {
		g := newTimed(t)
		for range 60 {
			g.report(10, 0, 10, 0)
		}
		if got := g.keptFirst(); got != 2*time.Second {
			t.Fatalf("%s: first tokens may take %v, want the edge above 1.15 s", name, got)
		}
		if got := g.keptTokens(); got != 0.04 {
			t.Fatalf("%s: tokens may take %v s, want the edge above 23 ms", name, got)
		}
		for range 60 {
			g.carriedAt, g.ownShare.mean = g.now, 0.5
			g.report(10-test.late, test.late, 10-test.slow, test.slow)
		}
		// Those of the minute's beginning have faded by its end.
		if got := g.outcomes.recentLate.some; got < 0.7*test.want || got > test.want {
			t.Errorf("%s: %.0f requests were late, want %.0f", name, got, test.want)
		}
		if late := g.budget.late > 5; late != (test.want > 0) {
			t.Errorf("%s: %.1f late requests are charged", name, g.budget.late)
		}
	}
}

// A pool without an objective is watched until some requests have shown how long they take, but not
// for ever.
func TestWithoutAnObjectiveAPoolIsWatchedForLonger(t *testing.T) {
	for every, want := range map[int][2]int{1: {20, 60}, 5: {140, 180}, 30: {170, 200}} {
		g := newTimed(t)
		watched := 0
		for i := range 240 {
			n := 0.0
			if i%every == 0 {
				n = 1
			}
			g.report(n, 0, n, 0)
			if g.watching(g.now) {
				watched = i + 1
			}
		}
		if watched < want[0] || watched > want[1] {
			t.Errorf("a request each %d s: watched for %d s, want %d to %d s", every, watched,
				want[0], want[1])
		}
	}
}

// Batch lines that engines count are not watched like users.
func TestWithoutUsersLinesAreNotWatched(t *testing.T) {
	c, runners := newPool(t, func(c *flowcontrol.Config) { c.SLO.TTFT, c.SLO.TPOT = 0, 0 }, "r")
	c.began = noon
	c.engineFirst.shownAt = noon.Add(5 * time.Second)
	runners[0].interactive.running.mean = 1
	if !c.watching(noon.Add(20 * time.Second)) {
		t.Error("a pool with users is not watched")
	}
	c.carriedAt = noon.Add(10 * time.Second)
	if c.watching(noon.Add(20 * time.Second)) {
		t.Error("a pool whose requests may be lines is watched")
	}
}

// How long requests take alone is known after a restart.
func TestWhatRequestsTakeAloneIsLearned(t *testing.T) {
	g := newTimed(t)
	for range 100 {
		g.report(10, 0, 10, 0)
	}
	var again quiet
	learned := g.quiet.learned(g.now)
	if !learned.valid() {
		t.Fatalf("%+v is refused", learned)
	}
	again.learn(g.now, learned, 2, 60, 1)
	g.quiet = again
	if first, tokens := g.keptFirst(), g.keptTokens(); first != 2*time.Second || tokens != 0.04 {
		t.Errorf("first tokens may take %v, tokens %v s, want 2 s and 40 ms", first, tokens)
	}
}

// A gateway that counts batch lines is recognised without an objective too. Lines in time prove
// nothing about users, so late requests are charged as if there were users only.
func TestWithoutAnObjectiveBatchLinesInTimeProveNothing(t *testing.T) {
	g := newTimed(t)
	for range 60 {
		g.report(10, 0, 10, 0)
	}
	for i := range 240 {
		lines := 4 + 10*float64(i/5%2)
		for range int(lines) {
			g.Observe(g.now, &flowcontrol.Started{Load: flowcontrol.Load{Runner: "r", InFlight: 1},
				PromptTokens: 10})
			g.Observe(g.now, &flowcontrol.Answered{Load: flowcontrol.Load{Runner: "r"},
				Latency: time.Second, OutputTokens: 20, PromptTokens: 10})
		}
		g.carriedAt, g.ownShare.mean = g.now, 0.5
		g.report(9+lines, 1, 10+lines, 0)
	}
	if !g.mixture.mixed() {
		t.Error("the gateway is not recognised as one that counts batch lines")
	}
	if users := 240.0 * 10; g.budget.requests > 1.2*users+600 {
		t.Errorf("%.0f requests count as users', who sent %.0f", g.budget.requests, users)
	}
	if g.budget.left() > 0 {
		t.Errorf("%.2f of the budget is left, of a tenth of late users", g.budget.left())
	}
}

// A replica of the gateway with slow answers goes while others count more.
func TestKeptTimesStayAHistogram(t *testing.T) {
	g := newTimed(t)
	g.report(10, 0, 10, 2)
	for range 40 {
		g.report(10, 0, 10, 0)
	}
	for i, grown := range []float64{5, 5, 3, 3} {
		g.tokens[i].Count += grown
	}
	g.report(0, 0, 0, 0)
	if counts := g.quiet.tokens; counts[3].Count < counts[1].Count {
		t.Errorf("%v counts fewer answers within a longer time", counts)
	}
	g.watched, g.carriedAt = true, g.now
	state := policy{g.Controller}.Learned(g.now)
	again, _ := newPool(t, func(c *flowcontrol.Config) { c.SLO.TTFT, c.SLO.TPOT = 0, 0 }, "r")
	if err := (policy{again}).Learn(g.now.Add(time.Minute), state, time.Minute); err != nil {
		t.Error(err)
	}
}

// Two sources with equally many edges are not added up.
func TestHistogramsOfOtherEdgesStartAgain(t *testing.T) {
	var f firstTokenTimes
	f.add([]flowcontrol.Bucket{{Upper: 1}, {Upper: 2}},
		[]flowcontrol.Bucket{{Upper: 1, Count: 40}, {Upper: 2, Count: 50}})
	f.add([]flowcontrol.Bucket{{Upper: 1}, {Upper: 4}},
		[]flowcontrol.Bucket{{Upper: 1, Count: 1}, {Upper: 4, Count: 3}})
	want := firstTokenTimes{{Upper: 1, Count: 1}, {Upper: 4, Count: 3}}
	if !slices.Equal(f, want) {
		t.Errorf("got %v, want %v", f, want)
	}
}

// Users who are served do not show that lines may grow where nobody says what late is.
func TestWithoutAnObjectiveServedUsersShowNoRunner(t *testing.T) {
	g := newTimed(t)
	for range 3 {
		g.report(1, 0, 1, 0)
	}
	if seen := g.roster.Members[0].State.staleness.lastObserved; !seen.Before(g.now) {
		t.Error("the runner counts as observed")
	}
}
