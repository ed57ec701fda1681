package lead

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/upstream"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/runner"
)

// runnerOfTest returns the runner of an upstream.
func runnerOfTest(t *testing.T, u upstream.Upstream) *upstream.Runner {
	t.Helper()
	made, err := upstream.New(upstream.Config{}, u, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// The planner plans with the engines of a gateway that show themselves, or else with the gateway.
func TestGatewaysAreAnnouncedByTheirEngines(t *testing.T) {
	l, f := NewLeadership(), NewFleet(time.Unix(0, 0))
	u := runnerOfTest(t, upstream.Upstream{URL: "http://gw", Name: "gw", Mode: upstream.ModeGateway,
		Engines: []string{"[ab]"}})
	f.Configure(map[string]*upstream.Runner{"gw": u})
	f.Served(u, upstream.List{Names: []string{"m"}})
	l.gain(1, []string{runnerName(u), ModelName("m")})
	now := time.Unix(1_000_000, 0)
	expect := func(want ...plan.Event) {
		t.Helper()
		if diff := cmp.Diff(want, f.announce(now, l.uses)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	up := func(name string, access flowcontrol.Access) plan.Event {
		return plan.RunnerUp{Runner: name, Models: []string{"m"}, Access: access,
			Gateway: "gw", Engine: "runner/http://gw##" + name}
	}
	expect(up("gw", flowcontrol.Opaque))
	expect()
	see := func(name string) {
		r := flowcontrol.NoReading(flowcontrol.Metrics, now)
		u.SeeEngine(now, name, &r)
	}
	see("gw/a")
	see("gw/b")
	expect(up("gw/a", flowcontrol.Routed), up("gw/b", flowcontrol.Routed),
		plan.RunnerGone{Runner: "gw"})
	now = now.Add(20 * time.Second)
	see("gw/b")
	now = now.Add(20 * time.Second)
	expect(plan.RunnerGone{Runner: "gw/a"})
	now = now.Add(20 * time.Second)
	expect(up("gw", flowcontrol.Opaque), plan.RunnerGone{Runner: "gw/b"})
	if got := upstream.Lookup(map[string]*upstream.Runner{"gw": u}, "gw/b"); got != u {
		t.Errorf("lines of an engine go to %v", got)
	}
}

// A gateway that is configured in another way keeps its runners. One that becomes a single engine
// is another runner, even under the same name.
func TestGatewayIsConfiguredAnew(t *testing.T) {
	l, f, now := NewLeadership(), NewFleet(time.Unix(0, 0)), time.Unix(1_000_000, 0)
	made := func(mode, header string) map[string]*upstream.Runner {
		return map[string]*upstream.Runner{"gw": runnerOfTest(t, upstream.Upstream{URL: "http://gw",
			Name: "gw",
			Mode: mode, TenantHeader: header})}
	}
	first := made(upstream.ModeGateway, "")
	f.Configure(first)
	f.Served(first["gw"], upstream.List{Names: []string{"m"}})
	l.gain(1, []string{runnerName(first["gw"]), ModelName("m")})
	f.announce(now, l.uses)
	if gone := f.Configure(made(upstream.ModeGateway, "X-Tenant")); gone != nil {
		t.Errorf("with another header it is %+v", gone)
	}
	if events := f.announce(now, l.uses); events != nil {
		t.Errorf("with another header it is announced anew: %+v", events)
	}
	want := []plan.Event{plan.RunnerGone{Runner: "gw"}}
	if diff := cmp.Diff(want, f.Configure(made("", ""))); diff != "" {
		t.Errorf("as a single engine (-want +got):\n%s", diff)
	}
	want = []plan.Event{plan.RunnerUp{Runner: "gw", Models: []string{"m"},
		Engine: "runner/http://gw#"}}
	if diff := cmp.Diff(want, f.announce(now, l.uses)); diff != "" {
		t.Errorf("as a single engine (-want +got):\n%s", diff)
	}
}

// What a runner says of itself before the planner knows the runner is not lost: at start, and where
// another process has led it.
func TestStopIsAnnouncedWithItsRunner(t *testing.T) {
	l, f, now := NewLeadership(), NewFleet(time.Unix(0, 0)), time.Unix(1_000_000, 0)
	u := runnerOfTest(t, upstream.Upstream{URL: "http://a", Name: "a"})
	f.Configure(map[string]*upstream.Runner{"a": u})
	f.Served(u, upstream.List{Names: []string{"m"}})
	u.Says(now, runner.State{Starting: true})
	up := plan.RunnerUp{Runner: "a", Models: []string{"m"}, Engine: "runner/http://a#"}
	stop, _ := u.StopNow(now)
	until := stop.Until
	for _, at := range []struct {
		when time.Time
		want []plan.Event
	}{
		{until.Add(-time.Second), []plan.Event{up,
			plan.RunnerStop{Runner: "a", Reason: plan.Starting, Until: until}}},
		{until, []plan.Event{up}}, // it is too old
	} {
		l.gain(1, []string{runnerName(u), ModelName("m")})
		if diff := cmp.Diff(at.want, f.announce(at.when, l.uses)); diff != "" {
			t.Errorf("events %v after it (-want +got):\n%s", at.when.Sub(now), diff)
		}
		l.lose([]string{runnerName(u), ModelName("m")})
		f.announce(at.when, l.uses)
	}
}

// Replacing one of many runners leaves what is known of the others, and what was announced.
func TestReplacingOneRunnerLeavesTheOthers(t *testing.T) {
	before := map[string]*upstream.Runner{}
	for i := range 100 {
		name := fmt.Sprint("pod-", i)
		before[name] = runnerOfTest(t, upstream.Upstream{URL: fmt.Sprintf("http://10.0.0.%d:8000",
			i),
			Name: name, Pool: "gpus"})
	}
	f, all := NewFleet(time.Now()), func(string) bool { return true }
	f.Configure(before)
	for _, u := range before {
		f.Served(u, upstream.List{Names: []string{"m"}, Engine: "e"})
	}
	if events := f.announce(time.Now(), all); len(events) != 100 {
		t.Fatalf("%d events for 100 runners", len(events))
	}
	after := maps.Clone(before)
	delete(after, "pod-50")
	after["pod-new"] = runnerOfTest(t, upstream.Upstream{URL: "http://10.0.1.1:8000",
		Name: "pod-new",
		Pool: "gpus"})
	gone := f.Configure(after)
	if len(gone) != 1 || gone[0] != (plan.RunnerGone{Runner: "pod-50"}) {
		t.Errorf("gone are %v", gone)
	}
	if events := f.announce(time.Now(), all); len(events) != 0 {
		t.Errorf("the planner is notified of %v", events)
	}
	if n := len(f.seen) + len(f.asked) + len(f.engines); n != 3*99 {
		t.Errorf("%d entries remain of 99 runners", n)
	}
}
