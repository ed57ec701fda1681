package dispatch

import (
	"github.com/tidefill/tidefill/dispatch/upstream"

	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

// runnerOfTest returns the runner of an upstream.
func runnerOfTest(t *testing.T, u Upstream) *upstream.Runner {
	t.Helper()
	made, err := upstream.New(upstream.Config{}, u, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// The planner plans with the engines of a gateway that show themselves, or else with the gateway.
func TestGatewaysAreAnnouncedByTheirEngines(t *testing.T) {
	l := newLeadership(time.Unix(0, 0))
	u := runnerOfTest(t, Upstream{URL: "http://gw", Name: "gw", Mode: ModeGateway,
		Engines: []string{"[ab]"}})
	l.configure(map[string]*upstream.Runner{"gw": u})
	l.served(u, upstream.List{Names: []string{"m"}})
	l.gain(1, []string{runnerName(u), modelName("m")})
	now := time.Unix(1_000_000, 0)
	expect := func(want ...plan.Event) {
		t.Helper()
		if diff := cmp.Diff(want, l.announce(now)); diff != "" {
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
	l, now := newLeadership(time.Unix(0, 0)), time.Unix(1_000_000, 0)
	made := func(mode, header string) map[string]*upstream.Runner {
		return map[string]*upstream.Runner{"gw": runnerOfTest(t, Upstream{URL: "http://gw",
			Name: "gw",
			Mode: mode, TenantHeader: header})}
	}
	first := made(ModeGateway, "")
	l.configure(first)
	l.served(first["gw"], upstream.List{Names: []string{"m"}})
	l.gain(1, []string{runnerName(first["gw"]), modelName("m")})
	l.announce(now)
	if gone := l.configure(made(ModeGateway, "X-Tenant")); gone != nil {
		t.Errorf("with another header it is %+v", gone)
	}
	if events := l.announce(now); events != nil {
		t.Errorf("with another header it is announced anew: %+v", events)
	}
	want := []plan.Event{plan.RunnerGone{Runner: "gw"}}
	if diff := cmp.Diff(want, l.configure(made("", ""))); diff != "" {
		t.Errorf("as a single engine (-want +got):\n%s", diff)
	}
	want = []plan.Event{plan.RunnerUp{Runner: "gw", Models: []string{"m"},
		Engine: "runner/http://gw#"}}
	if diff := cmp.Diff(want, l.announce(now)); diff != "" {
		t.Errorf("as a single engine (-want +got):\n%s", diff)
	}
}

// What a runner says of itself before the planner knows the runner is not lost: at start, and where
// another process has led it.
func TestStopIsAnnouncedWithItsRunner(t *testing.T) {
	l, now := newLeadership(time.Unix(0, 0)), time.Unix(1_000_000, 0)
	u := runnerOfTest(t, Upstream{URL: "http://a", Name: "a"})
	l.configure(map[string]*upstream.Runner{"a": u})
	l.served(u, upstream.List{Names: []string{"m"}})
	u.Says(now, RunnerState{Starting: true})
	up := plan.RunnerUp{Runner: "a", Models: []string{"m"}, Engine: "runner/http://a#"}
	stop, _ := u.StopNow(now)
	until := stop.Until
	for _, at := range []struct {
		when time.Time
		want []plan.Event
	}{
		{until.Add(-time.Second), []plan.Event{up,
			plan.RunnerState{Runner: "a", Stop: plan.Starting, Until: until}}},
		{until, []plan.Event{up}}, // it is too old
	} {
		l.gain(1, []string{runnerName(u), modelName("m")})
		if diff := cmp.Diff(at.want, l.announce(at.when)); diff != "" {
			t.Errorf("events %v after it (-want +got):\n%s", at.when.Sub(now), diff)
		}
		l.lose([]string{runnerName(u), modelName("m")})
		l.announce(at.when)
	}
}
