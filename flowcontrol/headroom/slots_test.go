package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
)

// endless lines hold what they have got.
var endless = costmodel.Mix{Output: 1e9}

// knownPool returns the controller of a pool with 100 sequences that has been known for long, and
// its runner.
func knownPool(t *testing.T) (*Controller, *runner) {
	c, runners := newPool(t, func(c *flowcontrol.Config) {
		c.Engine.MaxSeqs, c.Engine.KVTokens = 100, 0
	}, "r")
	c.began = noon.Add(-1000 * time.Hour)
	runners[0].interactive.seenAt = noon
	return c, runners[0]
}

// Requests that are in time though they wait a moment for a sequence need not find a free one.
func TestPatienceOfSlots(t *testing.T) {
	free := func(answer float64) int {
		c, r := knownPool(t)
		r.interactive.demand = 20
		c.slots.see(noon, 40, 100)
		c.slots.update(100, 0.01, answer, 50, 2000)
		lines, reason := c.safeLines(noon, r, endless)
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
	c, r := knownPool(t)
	now := noon
	for i := range 60 {
		now = now.Add(5 * time.Second)
		demand := 10.0
		if i%20 == 0 { // a sixth of the requests come in bursts
			demand = 80
		}
		r.interactive.demand = demand
		c.slots.see(now, demand, 100)
	}
	c.slots.update(100, 0.01, 1e9, 50, 2000)
	if got, _ := c.safeLines(noon, r, endless); got > 21 {
		t.Errorf("%d lines are safe between bursts of 80 requests on 100 sequences", got)
	}
}
