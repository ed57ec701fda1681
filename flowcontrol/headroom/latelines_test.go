package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// The limit rests where as many requests are late as may be, and lines hardly change there.
func TestLateLinesRestWhereTheAllowedShareIsLate(t *testing.T) {
	const allowed, harm = 0.006, 0.0005 // harm: share of requests that each line makes late
	l, now := newLateLines(allowed), noon
	lines, least, most := 60.0, 60.0, 0.0
	for s := range 3 * 3600 {
		now = now.Add(time.Second)
		l.carry(now, lines)
		l.read(now, 5, 5*harm*lines, true)
		lines = min(60, l.level.value)
		if s > 3600 {
			least, most = min(least, lines), max(most, lines)
		}
	}
	if want := lateShare * allowed / harm; least < 0.9*want || most > 1.1*want {
		t.Errorf("%v to %v lines, want %v", least, most, want)
	}
}

// A late request that comes after as many others as may have one says nothing against the lines.
func TestALateRequestOfManyDoesNotLowerTheLimit(t *testing.T) {
	for requests, want := range map[float64]float64{0: 10.4, 1000: 13} {
		l := newLateLines(0.006)
		l.carry(noon, 10)
		l.read(noon, requests, 0, true)
		l.read(noon.Add(time.Second), 0, 1, true)
		if got := l.level.value; got < want-0.2 || got > want+0.2 {
			t.Errorf("after %v requests in time, a late one makes the limit %.1f, want %v",
				requests, got, want)
		}
	}
}

// The limit begins as a guess, so the first late requests move it most; a limit that was learned is
// none.
func TestFirstLateRequestsMoveTheLimitMost(t *testing.T) {
	// late returns how many requests are late until the lines fall to a quarter of 40, each of
	// which makes some of them late.
	late := func(l *lateLines) float64 {
		const harm = 0.001
		sum, lines, now := 0.0, 40.0, noon
		for lines > 10 {
			now = now.Add(time.Second)
			l.carry(now, lines)
			l.read(now, 5, 5*harm*lines, true)
			sum += 5 * harm * lines
			lines = min(lines, l.level.value)
		}
		return sum
	}
	guessed, learned := newLateLines(0.006), newLateLines(0.006)
	learned.learn(learnedLevel{Value: 40, Rate: 5}, 1)
	if first, later := late(&guessed), late(&learned); first > 20 || later < 2*first {
		t.Errorf("%.0f requests are late until a guess is right, and %.0f with a learned limit",
			first, later)
	}
}

// A limit that was not tested for long begins at what runners carry.
func TestLateLinesBeginAtWhatRunnersCarry(t *testing.T) {
	l := newLateLines(0.006)
	l.carry(noon, 20)
	l.read(noon.Add(time.Second), 1000, 0, true)
	if l.level.value < noLateLimit {
		t.Errorf("limit %v before any request was late", l.level.value)
	}
	l.read(noon.Add(2*time.Second), 5, 1, true)
	// Of the thousand before it some might have been late, and the others of its reading were not.
	const rise = 1 + firstRise*firstGain
	if l.level.value > rise*aboveCarried*20 || l.level.value < 20 {
		t.Errorf("limit %v after the first late request, with 20 lines", l.level.value)
	}
}

func TestLateLinesLimitGrants(t *testing.T) {
	c, runners := newPool(t, nil, "r")
	c.watched, c.lines, runners[0].own.lines = true, 20, 20
	grant := func() flowcontrol.RunnerAllowance {
		g := flowcontrol.RunnerAllowance{}
		c.grantLines(noon, runners[0], c.poolLoad(noon), &g)
		return g
	}
	if g := grant(); g.Lines < 20 {
		t.Fatalf("the grant is %+v before any request was late", g)
	}
	c.lateLines.carry(noon, 10)
	c.chargeLate(noon, 10, 1)
	if g := grant(); g.Lines != 10 || g.Reason != ReasonLateLines {
		t.Errorf("the grant is %+v, want 10 lines because of late requests", g)
	}
	c.shared = false
	if g := grant(); g.Lines < 20 {
		t.Errorf("the grant is %+v in a pool without users", g)
	}
}

// A limit of half a line leaves one line on every other runner, not none anywhere.
func TestLateLinesAreDividedAmongRunners(t *testing.T) {
	c, runners := newPool(t, nil, "a", "b", "c", "d")
	for most, want := range map[float64][]int{0.5: {1, 1, 0, 0}, 0.1: {0, 0, 0, 0},
		1.25: {2, 1, 1, 1}, 3: {3, 3, 3, 3}} {
		c.lateLines.level.value = most
		for i, r := range runners {
			g := flowcontrol.RunnerAllowance{Lines: 20}
			if c.boundByLate(noon, r, &g); g.Lines != want[i] || g.Reason != ReasonLateLines {
				t.Errorf("limit %v: runner %d has %+v, want %d lines", most, i, g, want[i])
			}
		}
	}
}

func TestLateLinesSurvive(t *testing.T) {
	l := newLateLines(0.006)
	l.carry(noon, 10)
	l.read(noon, 10, 1, true)
	for trust, want := range map[float64]float64{1: l.level.value, 0.5: 2 * l.level.value} {
		again := newLateLines(0.006)
		again.learn(l.level.learned(), trust)
		if again.level.value != want {
			t.Errorf("with trust %v: limit %v, want %v", trust, again.level.value, want)
		}
	}
	none, again := newLateLines(0.006), newLateLines(0.006)
	if again.learn(none.level.learned(), 0.5); again.level.value != noLateLimit {
		t.Errorf("no limit became %v", again.level.value)
	}
}

// In a pool of many requests, a few that are charged by mistake limit nothing; many do, and so does
// one in a pool of few, but not a part of one.
func TestFewLateOfManyRequestsDoNotLimit(t *testing.T) {
	for _, test := range []struct {
		requests, late float64 // in a second
		limits         bool
	}{{10, 0.01, false}, {10, 0.04, true}, {0.3, 0.004, true}, {0.3, 0.003, false}} {
		c, _ := newPool(t, nil, "r")
		for s := range 300 {
			at := noon.Add(time.Duration(s) * time.Second)
			c.lateLines.carry(at, 10)
			c.chargeLate(at, test.requests, test.late)
		}
		if limits := c.lateLines.level.value < 100; limits != test.limits {
			t.Errorf("%v late of %v requests: the limit is %v", test.late, test.requests,
				c.lateLines.level.value)
		}
	}
}

// Where many requests come, whatever is late limits lines that use a part of the room.
func TestLateRequestsLimitManyLines(t *testing.T) {
	for lines, limits := range map[float64]bool{2: false, 200: true} {
		c, _ := newPool(t, nil, "r")
		c.alone.iteration.value = 40
		for s := range 300 {
			at := noon.Add(time.Duration(s) * time.Second)
			c.lateLines.carry(at, lines)
			c.chargeLate(at, 10, 0.01)
		}
		if got := c.lateLines.level.value; got < noLateLimit != limits {
			t.Errorf("%v lines, room for %v: the limit is %v", lines, c.linesByRoom(), got)
		}
	}
}

// Requests that were late while nothing was read say nothing about the lines that run now.
func TestLateRequestsOfAGapDoNotLimit(t *testing.T) {
	for every, limits := range map[time.Duration]bool{time.Second: true, 10 * time.Minute: false} {
		c, _ := newPool(t, nil, "r")
		c.lateLines.carry(noon, 2)
		c.outcomes.every = every
		c.chargeLate(noon, 100, 10)
		if got := c.lateLines.level.value; got < noLateLimit != limits {
			t.Errorf("the first reading after %v: the limit is %v", every, got)
		}
		if c.budget.late != 10 {
			t.Errorf("the first reading after %v: %v are charged", every, c.budget.late)
		}
	}
}

// The limit is that of runners which users are sent to, so packed ones have none.
func TestLateRequestsDoNotLimitPackedRunners(t *testing.T) {
	c, runners := newPool(t, nil, "full", "free")
	c.lateLines.level.value = 1
	runners[0].packed = 50
	for i, want := range []int{50, 1} {
		g := flowcontrol.RunnerAllowance{Lines: 50}
		if c.boundByLate(noon, runners[i], &g); g.Lines != want {
			t.Errorf("runner %d has %d lines, want %d", i, g.Lines, want)
		}
	}
}

// Where no users come, no request can raise a limit that leaves no line to any runner. One line
// starts now and then.
func TestALimitWithoutUsersLeavesALineNowAndThen(t *testing.T) {
	for _, users := range []bool{false, true} {
		c, runners := newPool(t, nil, "a", "b")
		c.watched, c.lateLines.level.value, c.carriedAt = true, 0.1, noon
		lines := func(at time.Time) (sum int) {
			if c.chargeLate(at, 0, 0); users {
				c.chargeLate(at, 5, 0)
			}
			for _, r := range runners {
				g := flowcontrol.RunnerAllowance{Lines: 20}
				c.boundByLate(at, r, &g)
				sum += g.Lines
			}
			return sum
		}
		if n := lines(noon.Add(probeAfter - time.Second)); n > 0 {
			t.Errorf("users %v: %d lines at once", users, n)
		}
		if n := lines(noon.Add(probeAfter)); n > 0 == users {
			t.Errorf("users %v: %d lines after a while", users, n)
		}
	}
}
