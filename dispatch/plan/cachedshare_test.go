package plan

import (
	"slices"
	"testing"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

// Prompts of a shared prefix count for the part that is computed, on runners that have computed the
// prefix.
func TestSharedPrefixesCountOnce(t *testing.T) {
	flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 4})
	w := newTestDriver(t, DefaultConfig(), scheduler.DefaultConfig(), flow)
	w.cached = 90
	w.runnerUp("r1", "m")
	w.put(Batch{ID: "b", Created: noon}, map[string][]int{"m": {64}})
	w.load(0, 1000)
	prefilling := func(runner string) int { return w.planner.runners[runner].lines.prefilling }
	if got := prefilling("r1"); got != 4000 {
		t.Fatalf("before any answer, %d prompt tokens wait, want 4000", got)
	}
	for range 2 * cachedAnswers {
		w.finish(w.requests[0], Succeeded, 200, 0)
	}
	if got := prefilling("r1"); got < 400 || got > 404 {
		t.Errorf("with 90 %% cached, %d prompt tokens of 4 lines wait, want 400", got)
	}
	w.runnerUp("r2", "m")
	if got := prefilling("r2"); got != 4000 {
		t.Errorf("on a runner with an empty cache, %d prompt tokens wait, want 4000", got)
	}
	w.runnerGone("r1")
	w.runnerUp("r1", "m")
	for _, f := range slices.Clone(w.requests) {
		if f.Runner == "r1" { // answers of its former life say nothing about this one
			w.finish(f, Succeeded, 200, 0)
		}
	}
	if got := prefilling("r1"); got != 4000 {
		t.Errorf("after a restart, %d prompt tokens wait, want 4000", got)
	}
}

// The estimate of the cached share follows recent answers and is low while they differ.
func TestCachedShareIsPrudent(t *testing.T) {
	r := &runner{}
	for _, test := range []struct {
		name        string
		shares      []int // percent, repeated
		least, most int   // of 1000 tokens
	}{
		{"nothing is cached", []int{0}, 0, 0},
		{"the same prefix", []int{90}, 899, 900},
		{"prompts of several lengths", []int{70, 80, 90}, 700, 750},
		{"every second one", []int{0, 95}, 0, 20},
		{"one miss in ten", []int{0, 95, 95, 95, 95, 95, 95, 95, 95, 95}, 400, 700},
	} {
		var c cachedShare
		c.computedOn(r)
		for i := range 200 {
			c.add(1000, 10*test.shares[i%len(test.shares)])
		}
		if got := c.of(1000, r); got < test.least || got > test.most {
			t.Errorf("%s: %d of 1000 tokens, want %d to %d", test.name, got, test.least, test.most)
		}
	}
	var c cachedShare
	c.computedOn(r)
	for range 1000 {
		c.add(1000, 950)
	}
	for range cachedAnswers {
		c.add(1000, 0)
	}
	if got := c.of(1000, r); got > 500 {
		t.Errorf("%d answers after the cache was lost, %d of 1000 tokens are expected in it",
			cachedAnswers, got)
	}
}
