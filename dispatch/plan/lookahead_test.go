package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

func lookAheadDriver(t *testing.T, lookAhead, tokens int) *testDriver {
	cfg := DefaultConfig()
	cfg.LookAhead, cfg.LookAheadTokens = lookAhead, tokens
	flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 2})
	w := newTestDriver(t, cfg, scheduler.DefaultConfig(), flow)
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

// The number of lines being read is limited, however many batches there are and however slow the
// store is.
func TestClaimsAreLimited(t *testing.T) {
	const lookAhead = 8
	w := lookAheadDriver(t, lookAhead, 1_000_000)
	for i := range 100 {
		w.put(Batch{ID: fmt.Sprintf("b%03d", i), Created: noon}, chunksOf(4, 10))
	}
	if expected := w.planner.pools[0].expected; expected < 2*lookAhead ||
		expected > 2*lookAhead+lookAhead/2 {
		t.Errorf("%d lines expected, want about twice the look-ahead of %d", expected, lookAhead)
	}
}

// The prompt tokens of ready lines are limited, except for a chunk of each job that was next while
// a slot was free.
func TestPromptTokensOfReadyLinesAreLimited(t *testing.T) {
	const most, line = 1000, 100
	w := lookAheadDriver(t, 1000, most)
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
		w.finish(w.requests[0], Succeeded, 200, 0)
	}
}

// If the ready lines have enough prompt tokens, those of an urgent new batch are still read when a
// slot becomes free.
func TestUrgentBatchIsReadBeyondTheLimit(t *testing.T) {
	w := lookAheadDriver(t, 8, 1)
	w.put(Batch{ID: "large", Created: noon}, chunksOf(8, 10))
	for len(w.claims) > 0 {
		w.load(0, 1000)
	}
	w.put(Batch{ID: "urgent", Created: noon, Deadline: noon.Add(time.Minute)}, chunksOf(1, 1))
	w.finish(w.requests[0], Succeeded, 200, 0)
	if len(w.claims) == 0 || w.claims[len(w.claims)-1].Batch != "urgent" {
		t.Fatalf("claims %v, want that of the urgent batch last", w.claims)
	}
}

// A pool whose lines can't be loaded says why, until they are or their batch is gone.
func TestAPoolSaysWhyItsLinesAreNotLoaded(t *testing.T) {
	w := lookAheadDriver(t, 8, 1000)
	fail := func(batch string, why Reason) {
		w.claims = nil
		w.step(Loaded{Key: JobKey{batch, "m1"}, More: true, Wait: time.Second, Failed: why})
	}
	want := func(reason Reason) {
		t.Helper()
		if got := w.planner.Pools()[0].Reason; got != reason {
			t.Errorf("the pool waits for %q, want %q", got, reason)
		}
	}
	w.put(Batch{ID: "a", Created: noon}, chunksOf(4, 1))
	fail("a", StoreDown)
	want(StoreDown)
	w.put(Batch{ID: "b", Created: noon}, chunksOf(4, 1))
	fail("b", DiskFull)
	want(DiskFull)
	w.batchGone("b")
	want(StoreDown)
	fail("a", Flowing)
	want(NothingReady)
}
