package plan

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

// A gateway that asks for a pause gets no line until it is over, whichever of its engines a line
// was planned for. Another gateway goes on.
func TestRetryAfterOfAGatewayHoldsAllItsRunners(t *testing.T) {
	flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 2})
	p := newPlanner(t, DefaultConfig(), Deps{Scheduler: scheduler.DefaultConfig(), Flow: flow,
		Random: rand.New(rand.NewPCG(1, 2))})
	lines := make([]Line, 100)
	for i := range lines {
		lines[i].Slot = i
	}
	p.Step(noon, BatchPut{Batch{ID: "b", Tenant: "t", Created: noon,
		Models: []ModelLines{{Model: "m", Lines: len(lines)}}}})
	p.Step(noon, Loaded{Key: JobKey{"b", "m"}, Lines: lines})
	up := func(gateway, engine string) []Start {
		return p.Step(noon, RunnerUp{Runner: gateway + "/" + engine, Models: []string{"m"},
			Access: flowcontrol.Routed, Gateway: gateway}).Start
	}
	refused := up("gw", "a")[0]
	elsewhere := up("gw", "b")[0]
	other := up("other", "a")[0]
	if got := p.Step(noon, &Finished{Start: refused, Outcome: Shed, Status: 429,
		RetryAfter: 30 * time.Second}).Start; len(got) > 0 {
		t.Errorf("%v start at a gateway that asks for a pause", runnersOf(got))
	}
	if got := up("gw", "c"); len(got) > 0 {
		t.Errorf("%v start on an engine that comes in the pause", runnersOf(got))
	}
	answered := func(after time.Duration, s Start) []string {
		return runnersOf(p.Step(noon.Add(after), &Finished{Start: s, Outcome: Succeeded,
			Status: 200, Latency: time.Second, OutputTokens: 5}).Start)
	}
	if got := answered(time.Second, elsewhere); len(got) > 0 {
		t.Errorf("%v start when a line of the gateway ends within the pause", got)
	}
	if diff := cmp.Diff([]string{"other/a"}, answered(time.Second, other)); diff != "" {
		t.Errorf("at the other gateway start (-want +got)\n%s", diff)
	}
	if status := p.Pools()[0].Runners[1]; status.ID != "gw/b" || status.Limit != 0 ||
		status.Granted != flowcontrol.ReasonRetryAfter {
		t.Errorf("within the pause the status is %+v", status)
	}
	if got := p.Step(noon.Add(30*time.Second-1), Tick{}).Start; len(got) > 0 {
		t.Errorf("%v start before the pause is over", runnersOf(got))
	}
	got := runnersOf(p.Step(noon.Add(30*time.Second), Tick{}).Start)
	if diff := cmp.Diff([]string{"gw/a", "gw/b", "gw/c", "gw/c"}, got); diff != "" {
		t.Errorf("after the pause start (-want +got)\n%s", diff)
	}
}
