package plan

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/aimd"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/flowcontrol/headroom"
	"github.com/tidefill/tidefill/scheduler"
)

// learned is a planner with two pools of one runner, whose policy aimd has raised both limits.
func learned(t *testing.T, flow flowcontrol.Config) *testDriver {
	w := newTestDriver(t, DefaultConfig(), scheduler.DefaultConfig(), flow)
	w.runnerUp("r1", "m1")
	w.runnerUp("r2", "m2")
	w.put(Batch{ID: "b", Created: noon}, map[string][]int{"m1": {400}, "m2": {400}})
	w.load(0, 100)
	w.load(0, 100)
	for range 60 {
		w.finish(w.requests[0], Succeeded, 200, 0)
	}
	return w
}

func (w *testDriver) limit(runner string) int { return w.planner.runners[runner].granted.Lines }

// Only the pool that is configured differently starts again, with what its policy starts with.
func TestReconfiguredPoolStartsAgainAndOthersKeepWhatTheyLearned(t *testing.T) {
	flow := flowcontrol.DefaultConfig().Select(aimd.Name, aimd.DefaultConfig())
	fresh := aimd.DefaultConfig().Start
	for name, c := range map[string]struct {
		change func(*flowcontrol.Config)
		want   int // of the pool of m1; -1: what it had learned
	}{
		"nothing": {func(*flowcontrol.Config) {}, -1},
		"an unused setting": {func(c *flowcontrol.Config) {
			*c = c.With(fixed.Name, fixed.Config{PerRunner: 1})
		}, -1},
		"a shadow":      {func(c *flowcontrol.Config) { c.Shadow.Policy = fixed.Name }, -1},
		"a setting":     {changeAIMD(func(c *aimd.Config) { c.Decrease = 0.5 }), fresh},
		"its start":     {changeAIMD(func(c *aimd.Config) { c.Start = 3 }), 3},
		"the policy":    {func(c *flowcontrol.Config) { c.Policy = headroom.Name }, 0},
		"the objective": {func(c *flowcontrol.Config) { c.SLO.TPOT = time.Second }, fresh},
	} {
		t.Run(name, func(t *testing.T) {
			w := learned(t, flow)
			before, other := w.limit("r1"), w.limit("r2")
			if before <= fresh || other <= fresh {
				t.Fatalf("limits of %d and %d were learned, want more than %d", before, other,
					fresh)
			}
			if c.want < 0 {
				c.want = before
			}
			changed := flow
			c.change(&changed)
			w.deps.Flow.Pools = map[string]flowcontrol.Config{"m1": changed}
			inFlight := len(w.requests)
			w.reconfigure()
			if got := w.limit("r1"); got != c.want {
				t.Errorf("the changed pool may carry %d lines, want %d", got, c.want)
			}
			if got := w.limit("r2"); got != other {
				t.Errorf("the other pool may carry %d lines, it had learned %d", got, other)
			}
			if len(w.requests) < inFlight {
				t.Errorf("%d lines are in flight, %d were", len(w.requests), inFlight)
			}
		})
	}
}

func changeAIMD(change func(*aimd.Config)) func(*flowcontrol.Config) {
	return func(c *flowcontrol.Config) {
		own := flowcontrol.OwnConfig[aimd.Config](*c, aimd.Name)
		change(&own)
		*c = c.With(aimd.Name, own)
	}
}

// A pause that a runner asked for outlives the controller that observed it.
func TestRetryAfterOutlivesTheController(t *testing.T) {
	flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 1})
	w := newTestDriver(t, DefaultConfig(), scheduler.DefaultConfig(), flow)
	w.runnerUp("r1", "m1")
	w.put(Batch{ID: "b", Created: noon}, map[string][]int{"m1": {8}})
	w.load(0, 100)
	w.finish(w.requests[0], Shed, 429, time.Minute)
	w.deps.Flow = flow.With(fixed.Name, fixed.Config{PerRunner: 4})
	w.reconfigure()
	w.pass(59 * time.Second)
	if len(w.requests) > 0 {
		t.Errorf("%d lines started within Retry-After", len(w.requests))
	}
	w.pass(time.Second)
	if len(w.requests) != 4 {
		t.Errorf("%d lines started after it, want 4", len(w.requests))
	}
}

// The order changes for lines that have not started.
func TestReorderedJobs(t *testing.T) {
	flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 1})
	order := scheduler.DefaultConfig()
	order.Policy, order.Urgency = "fifo", scheduler.UrgencyNever
	w := newTestDriver(t, DefaultConfig(), order, flow)
	w.runnerUp("r1", "m1")
	w.put(Batch{ID: "older", Tenant: "t", Created: noon.Add(-time.Hour)},
		map[string][]int{"m1": {5}})
	w.put(Batch{ID: "higher", Tenant: "t", Created: noon, Priority: 9},
		map[string][]int{"m1": {5}})
	for len(w.claims) > 0 {
		w.load(0, 100)
	}
	next := func() string {
		w.finish(w.requests[0], Succeeded, 200, 0)
		return w.requests[0].Key.Batch
	}
	if got := next(); got != "older" {
		t.Errorf("fifo sends a line of %s", got)
	}
	w.deps.Scheduler.Policy = "priority"
	w.reconfigure()
	if got := next(); got != "higher" {
		t.Errorf("priority sends a line of %s", got)
	}
	if batches := w.planner.pools[0].starts.Len(); batches != 2 {
		t.Errorf("%d jobs are queued, want 2", batches)
	}
}

// A shadow that is switched on learns at once which runners there are.
func TestShadowIsSwitchedOn(t *testing.T) {
	w := learned(t, flowcontrol.DefaultConfig().Select(aimd.Name, aimd.DefaultConfig()))
	if got := w.planner.Shadows(w.now); got[0] != nil || got[1] != nil {
		t.Errorf("shadows %+v, want none", got)
	}
	w.deps.Flow.Shadow.Policy = fixed.Name
	w.reconfigure()
	for _, s := range w.planner.Shadows(w.now) {
		if s == nil || s.Lines != 64 || s.Policy != fixed.Name {
			t.Errorf("the shadow allows %+v, want the 64 lines of fixed", s)
		}
	}
}

// A controller that replaces another learns how lines get to the engines. A runner that becomes
// another one under its name is reported anew.
func TestNewControllerLearnsTheAccessOfRunners(t *testing.T) {
	w := newTestDriver(t, DefaultConfig(), scheduler.DefaultConfig(), flowcontrol.DefaultConfig())
	joined := func() (access flowcontrol.Access) {
		w.planner.pools[0].rejoin(w.now, func(_ time.Time, o flowcontrol.Observation) {
			access = o.(*flowcontrol.RunnerJoined).Access
		})
		return access
	}
	for _, want := range []flowcontrol.Access{flowcontrol.Direct, flowcontrol.Opaque,
		flowcontrol.Routed} {
		w.step(RunnerUp{Runner: "gw", Models: []string{"m"}, Access: want})
		if got := joined(); got != want {
			t.Errorf("the access is %v, want %v", got, want)
		}
	}
}
