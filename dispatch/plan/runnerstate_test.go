package plan

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

// A runner that says that it takes no lines gets none, for the reason that it names, until it takes
// them again or has not repeated it for long. Others go on.
func TestStoppedRunnersGetNoLines(t *testing.T) {
	flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 2})
	p := newPlanner(t, DefaultConfig(), Deps{Scheduler: scheduler.DefaultConfig(), Flow: flow})
	now := time.Unix(1_000_000, 0)
	started := func(ev Event) (runners []string) {
		t.Helper()
		for _, s := range p.Step(now, ev).Start {
			runners = append(runners, s.Runner)
		}
		return runners
	}
	expect := func(what string, got []string, want ...string) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s: lines started on %v, want %v", what, got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%s: lines started on %v, want %v", what, got, want)
			}
		}
	}
	stop := func(runner string, why Reason) Event {
		return RunnerStop{Runner: runner, Reason: why, Until: now.Add(30 * time.Second)}
	}
	p.Step(now, RunnerUp{Runner: "a", Models: []string{"m"}})
	p.Step(now, stop("a", QueueFull))
	p.Step(now, stop("unknown", Unhealthy))
	p.Step(now, BatchPut{Batch{ID: "b", Tenant: "t", Created: now, Models: []ModelLines{
		{Model: "m", Lines: 100}}}})
	lines := make([]Line, 100)
	for i := range lines {
		lines[i] = Line{Slot: i, PromptTokens: 10}
	}
	expect("stopped", started(Loaded{Key: JobKey{"b", "m"}, Lines: lines}))
	if s, _ := p.Status(now, "b"); s.Waiting != QueueFull {
		t.Errorf("the batch waits for %q, want queue_full", s.Waiting)
	}
	if r := p.Pools()[0].Runners[0]; r.Granted != "queue_full" || r.Limit != 0 {
		t.Errorf("got %+v, want no lines because of queue_full", r)
	}
	expect("another runner", started(RunnerUp{Runner: "c", Models: []string{"m"}}), "c", "c")
	if s, _ := p.Status(now, "b"); s.Waiting == QueueFull {
		t.Error("the batch waits for queue_full although another runner has lines")
	}
	expect("it takes lines again", started(stop("a", Flowing)), "a", "a")
	p.Step(now, RunnerGone{Runner: "c"})
	p.Step(now, stop("a", Unhealthy))
	now = now.Add(30 * time.Second)
	if wake := p.Step(now, Tick{}).Wake; p.runners["a"].stop != Flowing {
		t.Errorf("the stop still holds after its time, next at %v", wake)
	}
}
