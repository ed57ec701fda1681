package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

func lookAheadWorld(t *testing.T, lookAhead, tokens int) *world {
	cfg := DefaultConfig()
	cfg.LookAhead, cfg.LookAheadTokens = lookAhead, tokens
	flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 2})
	w := newWorld(t, cfg, scheduler.DefaultConfig(), flow)
	w.runnerUp("r1", "m1")
	return w
}

func chunksOf(lines, n int) map[string][]int {
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = lines
	}
	return map[string][]int{"m1": sizes}
}

// However many batches there are and however slow the store is, what is being read is bounded.
func TestClaimsAreBounded(t *testing.T) {
	const lookAhead = 8
	w := lookAheadWorld(t, lookAhead, 1_000_000)
	for i := range 100 {
		w.put(Batch{ID: fmt.Sprintf("b%03d", i), Created: noon}, chunksOf(4, 10))
	}
	if expected := w.planner.pools[0].expected; expected < 2*lookAhead ||
		expected > 2*lookAhead+lookAhead/2 {
		t.Errorf("%d lines are expected, want twice the look-ahead of %d", expected, lookAhead)
	}
}

// Ready lines lie in memory: their weight is bounded, but for a chunk of each job whose turn came
// while a slot was free.
func TestReadyLinesAreBoundedByWeight(t *testing.T) {
	const most, line = 1000, 100
	w := lookAheadWorld(t, 1000, most)
	for i := range 20 {
		w.put(Batch{ID: fmt.Sprintf("b%03d", i), Created: noon}, chunksOf(4, 50))
	}
	for range 500 {
		for len(w.claims) > 0 {
			w.load(0, line)
		}
		if tokens := w.planner.pools[0].promptTokens; tokens > 6*most {
			t.Fatalf("lines of %d tokens are ready, want about %d", tokens, most)
		}
		w.finish(w.flights[0], Succeeded, 200, 0)
	}
}

// Where the ready lines weigh enough already, an urgent newcomer's are read all the same when a
// slot becomes free.
func TestNewcomerIsReadInSpiteOfWeight(t *testing.T) {
	w := lookAheadWorld(t, 8, 1)
	w.put(Batch{ID: "large", Created: noon}, chunksOf(8, 10))
	for len(w.claims) > 0 {
		w.load(0, 1000)
	}
	w.put(Batch{ID: "urgent", Created: noon, Deadline: noon.Add(time.Minute)}, chunksOf(1, 1))
	w.finish(w.flights[0], Succeeded, 200, 0)
	if len(w.claims) == 0 || w.claims[len(w.claims)-1].Batch != "urgent" {
		t.Fatalf("claims %v, want the newcomer's", w.claims)
	}
}
