package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

func unshared(c *flowcontrol.Config) { c.Shared = false }

// More prompts may wait while too few do, and fewer after sheds.
func TestFeed(t *testing.T) {
	f, cfg := feed{trust: 1}, defaultTuning()
	for range 20 {
		f.short = true
		f.pass(4, 50)
	}
	if f.prompts != 50 {
		t.Errorf("%v prompts after 20 s in which there were too few, want 50, the most", f.prompts)
	}
	f.cut(noon, 4, cfg)
	f.cut(noon.Add(time.Second), 4, cfg) // for the same reason
	if !near(f.prompts, 35) {
		t.Errorf("%v prompts after sheds of 50, want 35", f.prompts)
	}
	f.pass(4, 50) // there were enough
	if !near(f.prompts, 35) {
		t.Errorf("%v prompts after a second with enough, want 35", f.prompts)
	}
	f.waiting, f.short = 4, true
	if f.pass(4, 50); !near(f.prompts, 35) {
		t.Errorf("%v prompts after a second in which 4 waited in the engine, want 35", f.prompts)
	}
	for f.waiting, f.short = 0, true; f.prompts < 40; f.short = true {
		f.pass(4, 50)
	}
	before := f.prompts
	if f.pass(4, 50); f.prompts > before+1 {
		t.Errorf("%v prompts after %v, so close to the 50 that were shed", f.prompts, before)
	}
}

// Where not even the fewest prompts are taken, the rate was expected too high, and then the lines
// are too many.
func TestFeedOfFewest(t *testing.T) {
	f, cfg, now, sheds := feed{trust: 1, prompts: 4}, defaultTuning(), noon, 0
	for ; f.cut(now, 4, cfg); sheds++ {
		now = now.Add(cfg.DecreaseEvery)
	}
	if sheds < 3 || sheds > 10 || f.prompts != 4 {
		t.Errorf("lines are the reason after %d sheds, with %v prompts", sheds, f.prompts)
	}
	f.short = true
	if before := f.trust; !f.passes() || f.trust <= before {
		t.Errorf("the expected rate did not grow from %v", before)
	}
}

func (f *feed) passes() bool {
	f.pass(4, 50)
	return f.prompts == 4
}

// Between metrics, prompts are expected to be computed.
func TestPromptsOfFeed(t *testing.T) {
	c, runners := newPool(t, unshared, "r")
	r := runners[0]
	c.sizes.start(1000, 0, 100, 100)
	r.feed.knownAt = noon
	at := func(d time.Duration) float64 {
		tokens, more := c.promptsOfFeed(noon.Add(d), r)
		if !more.After(noon.Add(d)) {
			t.Errorf("more prompts %v after metrics at %v, want later", d, more)
		}
		return tokens
	}
	// An iteration with a chunk of 2048 tokens takes its base, and the time of each token.
	want := 1000 / (c.fit.perToken() + c.fit.perIteration()/2048)
	if got := at(time.Second) - at(0); !near(got, want) {
		t.Errorf("%v tokens a second count as computed, want %v", got, want)
	}
	if got := at(time.Hour) - at(longestFeed*time.Millisecond); got != 0 {
		t.Errorf("%v more tokens after an hour", got)
	}
}

// All that is held in the KV cache of a pool without users belongs to lines, whatever estimates
// say, and its runners need not be alike.
func TestUnsharedRunnersAreFull(t *testing.T) {
	lines := func(held float64, ids ...string) int {
		c, runners := newPool(t, unshared, ids...)
		c.sizes.start(1000, 0, 1000, 1000)
		for _, r := range runners {
			r.interactive.context.add(noon, time.Minute, held)
			r.interactive.seenAt, r.interactive.demand = noon, 100
			r.staleness.observed(noon)
		}
		return c.Allowance(noon).Runners[0].Lines
	}
	free := lines(0, "r")
	if free < 100 {
		t.Errorf("%d lines on a free runner, want more than 100", free)
	}
	if got := lines(200_000, "r"); got != free {
		t.Errorf("%d lines beside KV tokens that seem not to be theirs, want %d", got, free)
	}
	if got := lines(0, "r", "s"); got != free {
		t.Errorf("%d lines on one of two runners that carry none, want %d", got, free)
	}
}
