package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Requests that are in time though they wait a moment for a sequence need not find a free one.
func TestPatienceOfSlots(t *testing.T) {
	free := func(answer float64) int {
		c, runners := newPool(t, func(c *flowcontrol.Config) { c.Engine.MaxSeqs = 100 }, "r")
		runners[0].interactive.demand = 40
		c.slots.see(noon, 40, 100)
		c.slots.update(100, 0.01, answer, 50, 2000)
		lines, reason := runners[0].safeLines(noon, lineKV{}, c.slots, 0, c.engine, c.cfg)
		if reason != ReasonSlots {
			t.Errorf("the reason is %q, want %q", reason, ReasonSlots)
		}
		return lines
	}
	// Demand is counted in fiftieths of the sequences. If answers take 2 s, a quarter of the
	// requests gets a sequence within a quarter of the TTFT objective.
	if got, want := free(40), 100-42*4/5-1; got != want {
		t.Errorf("%d sequences are free beside short answers, want %d", got, want)
	}
	if got, want := free(1e9), 100-42; got != want {
		t.Errorf("%d sequences are free beside endless answers, want %d", got, want)
	}
}

// Sequences are kept for a burst that was seen, not only for what runs now.
func TestSlotsRememberBursts(t *testing.T) {
	c, runners := newPool(t, func(c *flowcontrol.Config) { c.Engine.MaxSeqs = 100 }, "r")
	now := noon
	for i := range 60 {
		now = now.Add(5 * time.Second)
		demand := 10.0
		if i%20 == 0 { // a sixth of the requests come in bursts
			demand = 80
		}
		runners[0].interactive.demand = demand
		c.slots.see(now, demand, 100)
	}
	c.slots.update(100, 0.01, 1e9, 50, 2000)
	if got, _ := runners[0].safeLines(now, lineKV{}, c.slots, 0, c.engine, c.cfg); got > 21 {
		t.Errorf("%d lines are safe between bursts of 80 requests on 100 sequences", got)
	}
}
