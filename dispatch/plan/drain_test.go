package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/flowcontrol"
)

// finish ends lines with an answer and returns those that start thereby.
func finish(p *Planner, starts ...Start) (next []Start) {
	for _, s := range starts {
		next = append(next, p.Step(noon, &Finished{Start: s, Outcome: Succeeded, Status: 200,
			InputTokens: 10, OutputTokens: 5, Latency: time.Second}).Start...)
	}
	return next
}

func TestDrainingRunnersGetNoLines(t *testing.T) {
	p := ofPools(t, map[string]int{"m": 3})
	p.Step(noon, RunnerDrain{Runner: "late", Draining: true})
	a := append([]Start(nil), p.Step(noon, RunnerUp{Runner: "a", Models: []string{"m"}}).Start...)
	p.Step(noon, RunnerUp{Runner: "b", Models: []string{"m"}})
	if got := p.Step(noon, RunnerUp{Runner: "late", Models: []string{"m"}}).Start; len(got) > 0 {
		t.Errorf("%v start on a runner that drains since before it came", runnersOf(got))
	}
	if got := p.Step(noon, RunnerDrain{Runner: "a", Draining: true}); len(got.Evict) > 0 {
		t.Errorf("%d lines are evicted", len(got.Evict))
	}
	if next := finish(p, a[0]); len(next) > 0 {
		t.Errorf("%v start on full and draining runners", runnersOf(next))
	}
	s := p.Pools()[0]
	if s.InFlight != 5 || s.Limit != 3 {
		t.Errorf("%d lines in flight of %d, want 5 of 3", s.InFlight, s.Limit)
	}
	want := RunnerStatus{ID: "a", InFlight: 2, Draining: true, Prefilling: s.Runners[0].Prefilling,
		Prompt: flowcontrol.NoLimit, Granted: "draining"}
	if diff := cmp.Diff(want, s.Runners[0]); diff != "" {
		t.Errorf("the runner's status is (-want +got)\n%s", diff)
	}
	if next := finish(p, a[1], a[2]); len(next) > 0 {
		t.Errorf("%v start while the runner drains", runnersOf(next))
	}
	got := runnersOf(p.Step(noon, RunnerDrain{Runner: "a"}).Start)
	if diff := cmp.Diff([]string{"a", "a", "a"}, got); diff != "" {
		t.Errorf("after the drain there start (-want +got)\n%s", diff)
	}
}

// A drain changes nothing that was measured, and readings of the runner count.
func TestFlowControlDoesNotLearnOfDrains(t *testing.T) {
	p := ofPools(t, nil)
	p.Step(noon, RunnerUp{Runner: "a", Models: []string{"m"}})
	flow := p.pools[0].flow
	p.Step(noon, RunnerDrain{Runner: "a", Draining: true})
	if p.pools[0].flow != flow || p.runners["a"].life != 0 {
		t.Error("the runner was removed")
	}
	spy := &spyController{Controller: flow}
	p.pools[0].flow = spy
	reading := flowcontrol.NoReading(flowcontrol.Metrics, noon)
	p.Step(noon, Reading{Runner: "a", Reading: &reading})
	if spy.reads != 1 {
		t.Errorf("%d readings count, want 1", spy.reads)
	}
}

func TestClosedPoolsGetNoLines(t *testing.T) {
	p := ofPools(t, map[string]int{"shared": 2, "batch": 2})
	p.Step(noon, PoolClosed{Pool: "shared", Closed: true})
	first := p.Step(noon, RunnerUp{Runner: "s", Pool: "shared", Models: []string{"m"}})
	if len(first.Start)+len(first.Claim) > 0 {
		t.Errorf("%d lines start in a closed pool, %d claims", len(first.Start), len(first.Claim))
	}
	if status, _ := p.Status(noon, "b"); status.Waiting != Closed {
		t.Errorf("the batch waits because of %q", status.Waiting)
	}
	p.Step(noon, RunnerUp{Runner: "b", Pool: "batch", Models: []string{"m"}})
	if status, _ := p.Status(noon, "b"); status.Waiting != Flowing {
		t.Errorf("with lines in another pool the batch waits because of %q", status.Waiting)
	}
	if got := p.Pools()[1]; got.Reason != Closed {
		t.Errorf("the pool is limited by %q", got.Reason)
	}
	got := runnersOf(p.Step(noon, PoolClosed{Pool: "shared"}).Start)
	if diff := cmp.Diff([]string{"s", "s"}, got); diff != "" {
		t.Errorf("after it is opened there start (-want +got)\n%s", diff)
	}
}

// Nothing is claimed for runners that all drain, nor for a closed pool.
func TestNothingIsClaimedForWhatIsClosed(t *testing.T) {
	for _, test := range []struct {
		shut, open Event
		why        Reason
	}{
		{RunnerDrain{Runner: "a", Draining: true}, RunnerDrain{Runner: "a"}, Draining},
		{PoolClosed{Pool: "p", Closed: true}, PoolClosed{Pool: "p"}, Closed},
	} {
		p := ofPools(t, nil)
		p.Step(noon, test.shut)
		p.Step(noon, BatchPut{Batch{ID: "other", Tenant: "t", Created: noon,
			Models: []ModelLines{{Model: "m", Lines: 100, PromptTokens: 1000}}}})
		up := RunnerUp{Runner: "a", Pool: "p", Models: []string{"m"}}
		if got := p.Step(noon, up).Claim; len(got) > 0 {
			t.Errorf("%s: %v are claimed", test.why, got)
		}
		for _, batch := range []string{"b", "other"} { // of which lines are ready, and not
			if status, _ := p.Status(noon, batch); status.Waiting != test.why {
				t.Errorf("%s: batch %s waits because of %q", test.why, batch, status.Waiting)
			}
		}
		if got := p.Step(noon, test.open).Claim; len(got) == 0 {
			t.Errorf("%s: nothing is claimed afterwards", test.why)
		}
	}
}
