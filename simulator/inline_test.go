package simulator

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// through lets interactive requests pass through the daemon, with an objective.
func through(s *Setup) {
	s.Scenario.Pool.Router = scenario.Inline
	s.Scenario.Interactive.Flow = scenario.Flow{Class: "critical", Objective: 14 * time.Millisecond}
}

// A request that passes through takes the network's time to its engine and back, beside what it
// takes there, and is judged by its objective too.
func TestRequestsPassThrough(t *testing.T) {
	const trace = "0,1,1\n100,1,11\n120,1,101\n600,1,1\n"
	direct := result(t, tiny(t, trace))
	s := tiny(t, trace)
	through(&s)
	inline := result(t, s)
	both := 2 * float64(s.Scenario.Pool.Network) / float64(time.Millisecond)
	if got := inline.Interactive.TTFT.P99 - direct.Interactive.TTFT.P99; math.Abs(got-both) > 0.01 {
		t.Errorf("first tokens take %v ms longer, want %v", got, both)
	}
	f := inline.Interactive.Flow
	if direct.Interactive.Flow != nil || f == nil || f.Class != "critical" || f.Refused != 0 ||
		inline.Interactive.Requests != 2 {
		t.Fatalf("%+v, directly %+v", inline.Interactive, direct.Interactive.Flow)
	}
	// 11 ms for each token, and some 50 ms: too much for eleven tokens, not for 101.
	if f.Attainment != 0.5 || f.PerTokenP95 < 12 || f.PerTokenP95 > 20 {
		t.Errorf("%+v, want half of the requests within the objective", f)
	}
	if inline.Loss != 0 || inline.Alone != nil {
		t.Errorf("loss %v, alone %+v: there is neither batch work nor another class", inline.Loss,
			inline.Alone)
	}
}

// A killed daemon cuts off the requests in flight and refuses others until it is back.
func TestKilledDaemonServesNobody(t *testing.T) {
	s := tiny(t, "0,1,1\n99,1,300\n102,1,1\n104,1,1\n130,1,1\n600,1,1\n")
	through(&s)
	s.Scenario.Faults = []scenario.Fault{{At: 100 * time.Second, Kind: scenario.Restart,
		For: 10 * time.Second}}
	sim, _, err := simulate(s, true, silent)
	if err != nil {
		t.Fatal(err)
	}
	u := sim.interactive.report()
	if u.Requests != 4 || u.Lost != 1 || u.Flow.Refused != 2 {
		t.Errorf("%d requests, %d lost, %d refused; want 4, 1 and 2", u.Requests, u.Lost,
			u.Flow.Refused)
	}
	if len(sim.requests) != 0 || len(sim.inline.offers) != 0 {
		t.Errorf("%d requests are left in engines, %d in the daemon", len(sim.requests),
			len(sim.inline.offers))
	}
}

// The requests of a lost replica are offered again, as the fault says, and find the other one.
func TestLostReplicaInline(t *testing.T) {
	for lost, want := range map[scenario.Lost]int{scenario.Retried: 0, scenario.Missed: 1} {
		s := tiny(t, "0,1,1\n99.5,1,100\n101,1,100\n140,1,1\n600,1,1\n")
		through(&s)
		s.Scenario.Pool.Replicas = 2
		s.Scenario.Faults = []scenario.Fault{{At: 100 * time.Second, Kind: scenario.Crash,
			Replicas: []int{0}, Lost: lost}}
		sim, _, err := simulate(s, true, silent)
		if err != nil {
			t.Fatal(err)
		}
		u := sim.interactive.report()
		if u.Requests != 3 || u.Lost != want || u.Flow.Refused != 0 {
			t.Errorf("%s: %d requests, %d lost, %d refused; want 3, %d and 0", lost, u.Requests,
				u.Lost, u.Flow.Refused, want)
		}
		if n := len(sim.inline.offers); n != 0 {
			t.Errorf("%s: %d requests are left", lost, n)
		}
	}
}

// A user who gives up frees what the request had, waiting or not.
func TestUsersGiveUpInline(t *testing.T) {
	s := tiny(t, "0,1,1\n600,1,1\n")
	through(&s)
	s.Policy.Plan.Inline = plan.DefaultInline()
	s.Policy.Plan.Inline.MaxRunning = 2
	s.Trace, s.Scenario.Interactive.Trace, s.Scenario.Interactive.Format = nil, "", ""
	s.Scenario.Interactive.Generator = "conversation"
	s.Scenario.Interactive.Users = scenario.Users{Count: 12, Think: time.Second,
		Timeout: 2 * time.Second, Retries: 1, Backoff: time.Second}
	sim, _, err := simulate(s, true, silent)
	if err != nil {
		t.Fatal(err)
	}
	u := sim.interactive.report()
	if u.GaveUp == 0 || u.Retries == 0 {
		t.Fatalf("nobody gave up: %+v", u)
	}
	running := 0
	for _, p := range sim.dispatcher.planner.Requests(sim.now) {
		for _, c := range p.Classes {
			running += c.Waiting + c.Running
		}
	}
	if running != len(sim.inline.offers) || running > 12 || len(sim.requests) > 4 {
		t.Errorf("the planner knows %d requests, the daemon %d, and engines hold %d", running,
			len(sim.inline.offers), len(sim.requests))
	}
}

// What S30 must show, at twice the capacity: critical requests fare as if they were alone, standard
// ones are refused while none of theirs is, and no line runs while requests wait.
func TestFlowsUnderOverload(t *testing.T) {
	s := bundled(t, "s30-flows.yaml")
	noBatch, err := RunNoBatch(s, silent)
	if err != nil {
		t.Fatal(err)
	}
	sim, err := newSimulation(s, true)
	if err != nil {
		t.Fatal(err)
	}
	waited, beside, before := 0, 0, 0
	for held := 0; sim.now.Before(sim.end); {
		sim.run(sim.now.Add(time.Second))
		status := sim.dispatcher.planner.Requests(sim.now)[0]
		lines := 0
		for _, j := range sim.dispatcher.jobs {
			lines += j.inFlight
		}
		if status.Reason != plan.ObjectiveAtRisk {
			held = 0
			if sim.now.Sub(epoch) < 6*time.Minute {
				before += lines
			}
			continue
		}
		if held++; held > 1 { // for a second
			waited++
			beside += lines
		}
	}
	r := Result{Interactive: sim.interactive.report(),
		minutes: sim.interactive.all().minutes}
	r.Batch, r.Jobs = sim.dispatcher.report()
	r.Compare(noBatch)
	t.Logf("of alone %.4f, loss %.2f, %d lines", r.OfAlone, r.Loss, r.Batch.Lines)
	if r.OfAlone < 0.99 {
		t.Errorf("critical requests attain %.4f of what they do alone", r.OfAlone)
	}
	standard, critical := r.Interactive.Classes[0].Flow, 0
	for _, c := range r.Interactive.Classes[1:3] {
		critical += c.Flow.Refused
	}
	if standard.Refused < 100 || critical > 0 {
		t.Errorf("%d standard and %d critical requests were refused", standard.Refused, critical)
	}
	if waited < 120 || float64(beside) > 0.05*float64(waited) {
		t.Errorf("%d lines ran in %d seconds in which requests waited", beside, waited)
	}
	if before < 6*60 {
		t.Errorf("%d lines in flight in the six minutes before", before)
	}
}

// What S31 must show: without any metrics, batch work beside requests that pass through harvests
// more than beside those that do not, and costs them as little.
func TestInlineBesideBatch(t *testing.T) {
	var ratios []float64
	for seed := range uint64(3) {
		var useful [2]int64
		for i, name := range []string{"s31-inline-beside.yaml", "s31-outside.yaml"} {
			setup := bundled(t, name, horizon(20*time.Minute))
			setup.Seed = 1 + seed
			r := result(t, setup)
			t.Logf("%s: loss %.2f, %d tokens", name, r.Loss, r.Batch.Useful)
			if r.Loss > 1 {
				t.Errorf("%s: loss %.2f", name, r.Loss)
			}
			useful[i] = r.Batch.Useful
		}
		ratios = append(ratios, float64(useful[0])/float64(useful[1]))
	}
	if slices.Sort(ratios); ratios[1] < 1.2 {
		t.Errorf("harvests are %.2f times those from outside", ratios)
	}
}
