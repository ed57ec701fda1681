package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
)

// Sequences need not be kept free beside lines that end before a request waits too long.
func TestEnding(t *testing.T) {
	c, _ := newPool(t, nil, "r")
	if got := c.ending(costmodel.Mix{Output: 1}); got != maxEnding {
		t.Errorf("%v of the shortest lines end in time, want %v", got, maxEnding)
	}
	if got := c.ending(endless); got > 1e-4 {
		t.Errorf("%v of endless lines end in time", got)
	}
	// Requests wait for a quarter of the objective.
	mix := costmodel.Mix{Output: 100}
	alone, want := c.ending(mix), slotPatience*milliseconds(c.slo.TTFT)/(100*c.targetTime())
	if !near(alone, want) {
		t.Errorf("%v of the lines end in time, want %v", alone, want)
	}
	if c.sizes.start(100_000, 0, 100, 100); c.ending(mix) >= alone {
		t.Errorf("%v of lines with long prompts end in time, want less than %v", c.ending(mix),
			alone)
	}
}

// The less is known of a pool's bursts, the more of it is kept free for them.
func TestUnknownBursts(t *testing.T) {
	c, r := knownPool(t)
	for _, test := range []struct {
		minutes       int
		unknown, free float64
	}{{0, 1, 30}, {15, 0.5, 15}, {135, 0.1, 3}} {
		c.began = c.ticked.Add(-time.Duration(test.minutes) * time.Minute)
		if got := c.unknown(); !near(got, test.unknown) {
			t.Errorf("unknown is %v after %d minutes, want %v", got, test.minutes, test.unknown)
		}
		if got, want := c.linesBySlots(noon, r, endless), 100-test.free; !near(got, want) {
			t.Errorf("%v lines after %d minutes, want %v", got, test.minutes, want)
		}
	}
	c, _ = newPool(t, func(c *flowcontrol.Config) { c.Shared = false }, "r")
	if got := c.unknown(); got != 0 {
		t.Errorf("unknown is %v in a pool without users, want 0", got)
	}
}

// A tenth of the KV cache is used while it is free, although bursts have wanted all of it.
func TestLargeBurstsLeaveAFewLines(t *testing.T) {
	c, runners := newPool(t, func(c *flowcontrol.Config) { c.Engine.KVTokens = 100_000 }, "r")
	r := runners[0]
	for range 300 { // lines of 200 tokens, which hold 1,000 on average
		c.sizes.start(900, 0, 200, 200)
		c.sizes.answer(900, 0, 200)
	}
	r.interactive.seenAt, c.kvWanted, c.began = noon, 1, noon.Add(-24*time.Hour)
	for _, test := range []struct{ held, least, most float64 }{
		{0, 8, 10}, {70_000, 8, 10}, {80_000, 3, 5}, {90_000, 0, 0},
	} {
		r.interactive.context = spread{mean: test.held}
		if got := c.linesByKV(noon, r, c.LineMix()); got < test.least || got > test.most {
			t.Errorf("%v lines while users hold %v tokens, want %v to %v", got, test.held,
				test.least, test.most)
		}
	}
}

// The KV cache holds a prefix once that lines share.
func TestSharedPrefixesLeaveRoomForLines(t *testing.T) {
	lines := func(cached int, every time.Duration) float64 {
		c, runners := newPool(t, func(c *flowcontrol.Config) { c.Engine.KVTokens = 100_000 }, "r")
		for range 300 {
			c.sizes.start(2000, cached, 200, 200)
			c.sizes.answer(2000, cached, 200)
		}
		r := runners[0]
		r.interactive.seenAt, r.interactive.every = noon, every
		c.began = noon.Add(-24 * time.Hour)
		return c.linesByKV(noon, r, c.LineMix())
	}
	if got := lines(0, time.Second); got < 37 || got > 42 { // of 85,000 tokens, 2,100 each
		t.Errorf("%v lines that share nothing, want 40", got)
	}
	if got := lines(1800, time.Second); got < 240 || got > 280 { // of 83,200, 300 each
		t.Errorf("%v lines that share 1,800 tokens of 2,000, want 277", got)
	}
	if got := lines(1800, time.Minute); got < 37 || got > 42 {
		t.Errorf("%v lines where nobody would notice that they share nothing, want 40", got)
	}
}

// A proven forecast lets more requests overflow.
func TestOverflow(t *testing.T) {
	c, _ := newPool(t, nil, "r")
	usual := 2 * c.slo.Late
	for _, test := range []struct {
		name           string
		expected, late float64
		want           float64
	}{
		{"no evidence", 0, 0, usual},
		{"half as many are late as expected", 2, 0, 2 * usual},
		{"none is late of many expected", 1e6, 0, maxOverflow},
		{"more are late than expected", 0, 2, usual / 2},
		{"far more are late than expected", 0, 1e6, usual / maxForecast},
	} {
		c.firstForecast.expected, c.firstForecast.late = test.expected, test.late
		if got := c.overflow(); !near(got, test.want) {
			t.Errorf("%s: overflow is %v, want %v", test.name, got, test.want)
		}
	}
}

// A runner whose metrics were never seen may be full of interactive requests.
func TestUnseenRunnersCarryFewLines(t *testing.T) {
	for _, test := range []struct {
		name         string
		seqs, tokens int
		reason       flowcontrol.Reason
	}{{"sequences", 100, 0, ReasonSlots}, {"KV cache", 0, 400_000, ReasonKV}} {
		t.Run(test.name, func(t *testing.T) {
			c, runners := newPool(t, func(c *flowcontrol.Config) {
				c.Engine.MaxSeqs, c.Engine.KVTokens = test.seqs, test.tokens
			}, "r")
			c.began = noon.Add(-1000 * time.Hour)
			for range 100 {
				c.sizes.start(2000, 0, 1000, 1000)
				c.sizes.answer(2000, 0, 1000)
			}
			mix, r := c.LineMix(), runners[0]
			unseen, reason := c.safeLines(noon, r, mix)
			if reason != test.reason {
				t.Errorf("the reason is %q, want %q", reason, test.reason)
			}
			c.outcomes.at = noon
			counted, _ := c.safeLines(noon, r, mix)
			c.outcomes.at, r.interactive.seenAt = time.Time{}, noon
			seen, _ := c.safeLines(noon, r, mix)
			for got, share := range map[int]float64{unseen: unseenShare, counted: countedShare} {
				if most := int(share*float64(seen)) + 1; got > most || got < most*3/4 {
					t.Errorf("%d lines, %d where metrics show an idle runner", got, seen)
				}
			}
			c.shared, r.interactive.seenAt = false, time.Time{}
			if alone, _ := c.safeLines(noon, r, mix); alone < seen {
				t.Errorf("%d lines in a pool without users, want %d or more", alone, seen)
			}
		})
	}
}

// What is assumed of lines must not keep a pool empty for ever: one starts, on one runner, if it
// fits as far as is known.
func TestOneLineScoutsWhereNoneMightFit(t *testing.T) {
	c, runners := newPool(t, func(c *flowcontrol.Config) {
		c.Engine.MaxSeqs, c.Engine.KVTokens = 100, 4000
	}, "a", "b")
	for _, r := range runners {
		r.interactive.seenAt = noon
	}
	c.sizes.start(500, 0, 0, 3000)
	lines := func(r *runner) int {
		n, _ := c.safeLines(noon, r, c.LineMix())
		return n
	}
	if a, b := lines(runners[0]), lines(runners[1]); a != 1 || b != 1 {
		t.Errorf("%d and %d lines in an empty pool, want 1 on either", a, b)
	}
	runners[0].own.lines = 1
	if a, b := lines(runners[0]), lines(runners[1]); a != 1 || b != 0 {
		t.Errorf("%d and %d lines beside the first, want it alone", a, b)
	}
	runners[0].own.lines = 0
	runners[0].interactive.context.mean = 3500
	if a := lines(runners[0]); a != 0 {
		t.Errorf("%d lines on a runner that users fill", a)
	}
}

// Where users who wait are noticed, a quarter of the runners may scout.
func TestAQuarterScoutsWhereUsersAreNoticed(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	c, runners := newPool(t, func(c *flowcontrol.Config) { c.Engine.KVTokens = 4000 }, names...)
	for _, r := range runners {
		r.interactive.seenAt, r.interactive.every = noon, time.Second
	}
	c.sizes.start(500, 0, 0, 3000)
	for before, want := range []int{1, 1, 0} {
		if got := int(c.linesByKV(noon, runners[7], c.LineMix())); got != want {
			t.Errorf("%v lines beside %d scouts, want %v", got, before, want)
		}
		runners[before].own.lines = 1
	}
}

// Users who wait are noticed by metrics of their engine or counts of a gateway, if they come soon
// after each other.
func TestUsersAreNoticedByFrequentReadings(t *testing.T) {
	c, runners := newPool(t, nil, "r")
	r := runners[0]
	for _, test := range []struct {
		name             string
		engine, outcomes time.Duration
		of               flowcontrol.Source
		want             bool
	}{
		{"nothing was read", 0, 0, flowcontrol.Gateway, false},
		{"metrics each second", time.Second, 0, flowcontrol.Gateway, true},
		{"metrics each half minute", 30 * time.Second, 0, flowcontrol.Gateway, false},
		{"a gateway each second", 30 * time.Second, time.Second, flowcontrol.Gateway, true},
		{"a gateway each half minute", 0, 30 * time.Second, flowcontrol.Gateway, false},
		// Each reading of one of many runners counts there.
		{"first tokens of engines", 30 * time.Second, time.Second, flowcontrol.Metrics, false},
	} {
		r.interactive.every, c.outcomes.every, c.source.of = test.engine, test.outcomes, test.of
		r.interactive.seenAt, c.outcomes.at = noon, noon
		if got := c.noticesUsers(noon.Add(soon), r); got != test.want {
			t.Errorf("%s: noticed is %v, want %v", test.name, got, test.want)
		}
		if c.noticesUsers(noon.Add(3*soon), r) {
			t.Errorf("%s: users are noticed after the readings have ended", test.name)
		}
	}
}

// More lines run where users are noticed, and never more than fit at their mean size beside all
// that users wanted.
func TestMoreLinesFitWhereUsersAreNoticed(t *testing.T) {
	c, runners := newPool(t, func(c *flowcontrol.Config) { c.Engine.KVTokens = 20_000 }, "r")
	r := runners[0]
	for i := range 300 { // some of the answers are long
		output := 100 + 1900*(i%10/9)
		c.sizes.start(900, 0, output, output)
		c.sizes.answer(900, 0, output)
	}
	r.interactive.seenAt, c.kvWanted, c.began = noon, 0.1, noon.Add(-24*time.Hour)
	mix := c.LineMix()
	unnoticed := c.linesByKV(noon, r, mix)
	r.interactive.every = time.Second
	noticed, all := c.linesByKV(noon, r, mix), 15_000/c.lineKV(mix).mean
	if noticed < 1.1*unnoticed || noticed > (1-estimateError)*all {
		t.Errorf("%v lines, %v where users are not noticed; %v would fit at their mean size",
			noticed, unnoticed, all)
	}
}

// Metrics that are hours old show no less than those of a minute ago.
func TestOldReadingsLeaveLines(t *testing.T) {
	c, runners := newPool(t, func(c *flowcontrol.Config) { c.Engine.KVTokens = 1e7 }, "r")
	c.sizes.start(2000, 0, 200, 200)
	c.sizes.answer(2000, 0, 200)
	in := &runners[0].interactive
	in.seenAt, in.demand = noon, 50
	for s := range 100 {
		in.running.add(noon.Add(time.Duration(s)*time.Second), time.Minute, float64(40+s%20))
	}
	lines := func(age time.Duration) int {
		n, _ := c.safeLines(noon.Add(age), runners[0], c.LineMix())
		return n
	}
	minute, hours := lines(time.Minute), lines(5*time.Hour)
	if minute == 0 || minute >= lines(0) || hours != minute {
		t.Errorf("%d lines at once, %d after a minute, %d after hours", lines(0), minute, hours)
	}
}
