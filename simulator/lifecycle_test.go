package simulator

import (
	"bytes"
	"math"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// drained runs a tiny scenario in which the replica is drained at a time, and returns
// the plant back at its end.
func drained(t *testing.T, s Setup, at time.Duration) *simulation {
	t.Helper()
	sim, err := newSimulation(s, true)
	if err != nil {
		t.Fatal(err)
	}
	r := sim.replicas[0]
	sim.queue.add(epoch.Add(at), r.drain)
	sim.run(sim.end)
	return sim
}

// What a draining replica can't end in time is given back or cut off, and it is
// paid for until then.
func TestDrain(t *testing.T) {
	long := scenario.Job{Name: "long", Kind: "gen"} // answers of some 1,500 tokens, 11 ms each
	for _, test := range []struct {
		name           string
		trace          string
		drain          scenario.Drain
		paid           time.Duration // after the drain began; negative: not known
		evicted        bool
		lost, requests int
	}{
		{"idle, and missed", "0,1,1\n200,1,1\n600,1,1\n", scenario.Drain{Batch: time.Minute,
			Interactive: 2 * time.Minute}, 0, false, 1, 1},
		{"lines are given back", "0,1,1\n600,1,1\n", scenario.Drain{Batch: 500 * time.Millisecond,
			Interactive: 2 * time.Minute}, -1, true, 0, 0},
		{"a request may end", "0,1,1\n99.5,64,101\n600,1,1\n", scenario.Drain{Batch: time.Minute,
			Interactive: 2 * time.Minute}, 674 * time.Millisecond, false, 0, 1},
		{"but not for ever", "0,1,1\n99.5,64,1001\n600,1,1\n", scenario.Drain{Batch: time.Minute,
			Interactive: 500 * time.Millisecond}, -1, false, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := tiny(t, test.trace)
			if test.evicted {
				s = tiny(t, test.trace, long)
				s.Policy.Flow.Policy = "fixed"
			}
			s.Scenario.Pool.Drain = test.drain
			const at = 100 * time.Second
			sim := drained(t, s, at)
			if len(sim.replicas) != 0 || len(sim.serving) != 0 || len(sim.requests) != 0 {
				t.Fatalf("there are still %d replicas, %d that serve, %d requests", len(
					sim.replicas), len(sim.serving), len(sim.requests))
			}
			paid := time.Duration(sim.gpuHours()*float64(time.Hour)) - at
			if test.paid >= 0 && (paid-test.paid).Abs() > time.Millisecond {
				t.Errorf("paid for %v after the drain began, want %v", paid, test.paid)
			}
			limit := max(test.drain.Batch, test.drain.Interactive)
			if paid > limit+time.Second {
				t.Errorf("paid for %v after the drain began, which may take %v", paid, limit)
			}
			if test.evicted != (sim.dispatcher.evictions > 0) ||
				test.evicted != (sim.dispatcher.wasted > 0) {
				t.Errorf("%d lines were given back, %d tokens are lost", sim.dispatcher.evictions,
					sim.dispatcher.wasted)
			}
			if test.evicted && (paid < test.drain.Batch || paid > test.drain.Batch+time.Second) {
				t.Errorf("lines were given back after %v, want %v", paid, test.drain.Batch)
			}
			if u := sim.interactive.report(); u.Lost != test.lost || u.Requests != test.requests {
				t.Errorf("%d of %d requests were lost, want %d of %d", u.Lost, u.Requests,
					test.lost, test.requests)
			}
		})
	}
}

// A replica that crashes loses its requests: the planner is notified of its lines, and interactive
// requests are retried or missed. It restarts as a new replica.
func TestCrash(t *testing.T) {
	const trace = "0,1,1\n99.5,64,101\n130,64,11\n600,1,1\n"
	for _, test := range []struct {
		name           string
		fault          scenario.Fault
		requests, lost int
		hours          time.Duration
	}{
		{"for good", scenario.Fault{Lost: scenario.Missed}, 2, 2, 100 * time.Second},
		{"and no replica is left to retry on", scenario.Fault{For: time.Minute}, 2, 2,
			300 * time.Second},
		{"and comes back in time for the second", scenario.Fault{For: 10 * time.Second,
			Lost: scenario.Missed}, 2, 1, 300 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := tiny(t, trace)
			test.fault.At, test.fault.Kind = 100*time.Second, scenario.Crash
			s.Scenario.Faults = []scenario.Fault{test.fault}
			sim, _, err := simulate(s, true, silent)
			if err != nil {
				t.Fatal(err)
			}
			if u := sim.interactive.report(); u.Requests != test.requests || u.Lost != test.lost {
				t.Errorf("%d of %d requests lost, want %d of %d", u.Lost, u.Requests, test.lost,
					test.requests)
			}
			if got := sim.gpuHours() * 3600; math.Abs(got-test.hours.Seconds()) > 1e-6 {
				t.Errorf("paid for %v s, want %v", got, test.hours.Seconds())
			}
		})
	}
	t.Run("retried elsewhere", func(t *testing.T) {
		s := tiny(t, trace)
		s.Scenario.Pool.Replicas = 2
		s.Scenario.Faults = []scenario.Fault{{At: 100 * time.Second, Kind: scenario.Crash,
			Replicas: []int{0}}}
		sim, _, err := simulate(s, true, silent)
		if err != nil {
			t.Fatal(err)
		}
		// The first starts again half a second late: 64 tokens in one iteration, after the 500 ms.
		want := 500 + 10 + 64 + 16 + 0.05
		if u := sim.interactive.report(); u.Lost != 0 || u.Requests != 2 ||
			math.Abs(u.TTFT.P99-want) > 0.01 {
			t.Errorf("%+v, want a TTFT of %v ms", u, want)
		}
	})
	t.Run("lines fail and are done elsewhere", func(t *testing.T) {
		s := tiny(t, "0,1,1\n600,1,1\n", scenario.Job{Name: "j", Kind: "bal", At: 95 * time.Second,
			Lines: 60})
		s.Scenario.Pool.Replicas = 2
		s.Policy.Flow.Policy = "fixed"
		s.Scenario.Faults = []scenario.Fault{{At: 100 * time.Second, Kind: scenario.Crash,
			Replicas: []int{0}}}
		var ends []plan.Outcome
		sim, err := newSimulation(s, true)
		if err != nil {
			t.Fatal(err)
		}
		sim.queue.add(epoch.Add(100*time.Second-1), func() {
			for _, a := range sim.dispatcher.jobs[0].attempts {
				if a.start.Runner == "replica-0" {
					ends = append(ends, plan.Died)
				}
			}
		})
		sim.run(sim.end)
		sum, jobs := sim.dispatcher.report()
		if len(ends) == 0 || jobs[0].Done != 60 || sum.Wasted == 0 {
			t.Errorf("%d lines failed, %d of 60 are done, %d tokens wasted", len(ends),
				jobs[0].Done,
				sum.Wasted)
		}
		if len(sim.dispatcher.replicas) != 1 {
			t.Errorf("the daemon knows %d replicas, want the one that is left", len(
				sim.dispatcher.replicas))
		}
	})
}

// Iterations of a slow replica take longer, those after it don't; a stall lengthens
// one.
func TestSlowAndStalled(t *testing.T) {
	const trace = "0,1,1\n100,64,101\n200,64,101\n600,1,1\n"
	s := tiny(t, trace)
	s.Scenario.Faults = []scenario.Fault{{At: 90 * time.Second, Kind: scenario.Slow, Factor: 2,
		For: 20 * time.Second}}
	sim, _, err := simulate(s, true, silent)
	if err != nil {
		t.Fatal(err)
	}
	// 11 ms an iteration, twice that while it is slow, and 0.05 ms to send a token.
	if u := sim.interactive.report(); math.Abs(u.TPOT.P99-22.05) > 1e-3 ||
		math.Abs(u.TPOT.P50-11.05) > 1e-3 {
		t.Errorf("TPOT %+v, want 22.05 and 11.05 ms", u.TPOT)
	}
	s.Scenario.Faults = []scenario.Fault{{At: 100*time.Second + 500*time.Millisecond,
		Kind: scenario.Stall, For: 200 * time.Millisecond}}
	if sim, _, err = simulate(s, true, silent); err != nil {
		t.Fatal(err)
	}
	if u := sim.interactive.report(); math.Abs(u.TPOT.P99-13.05) > 1e-3 {
		t.Errorf("TPOT %+v, want 200 ms more over 100 tokens", u.TPOT)
	}
}

// A fault that ends while another lasts leaves the other in effect.
func TestOverlappingFaults(t *testing.T) {
	s := tiny(t, "0,1,1\n360,64,101\n480,64,101\n900,1,1\n")
	s.Scenario.Horizon = 11 * time.Minute
	faults := func(kind scenario.FaultKind, long, short float64) {
		s.Scenario.Faults = []scenario.Fault{
			{Kind: kind, Factor: long, For: 10 * time.Minute},
			{Kind: kind, At: 5 * time.Minute, Factor: short, For: 2 * time.Minute}}
	}
	faults(scenario.Slow, 2, 3)
	sim, _, err := simulate(s, true, silent)
	if err != nil {
		t.Fatal(err)
	}
	// 11 ms an iteration: three times that in minute 6, twice in minute 8.
	if u := sim.interactive.report(); math.Abs(u.TPOT.P50-22.05) > 1e-3 ||
		math.Abs(u.TPOT.P99-33.05) > 1e-3 {
		t.Errorf("TPOT %+v, want 22.05 and 33.05 ms", u.TPOT)
	}
	faults(scenario.Shed, 0, 0)
	if sim, _, err = simulate(s, true, silent); err != nil {
		t.Fatal(err)
	}
	if until := sim.replicas[0].shedUntil.Sub(epoch); until != 10*time.Minute {
		t.Errorf("lines are shed until %v, want 10m", until)
	}
}

// A pool that sheds answers no line meanwhile, and loses none.
func TestShed(t *testing.T) {
	s := shortScenario()
	s.Scenario.Jobs[0].Window = 2 * time.Minute
	job := func() *job {
		sim, _, err := simulate(s, true, silent)
		if err != nil {
			t.Fatal(err)
		}
		return sim.dispatcher.jobs[0]
	}
	before := job()
	// The job begins 10 seconds after the fault.
	s.Scenario.Faults = []scenario.Fault{{At: 20 * time.Second, Kind: scenario.Shed,
		For: 30 * time.Second}}
	after := job()
	if after.done != after.Lines || after.failed != 0 || after.finished < before.finished+
		15*time.Second {
		t.Errorf("%d of %d lines done, %d failed, at %v; %v without the fault", after.done,
			after.Lines, after.failed, after.finished, before.finished)
	}
}

// A cold start is the same for every policy, lies within its bounds, and takes
// about its median.
func TestColdStart(t *testing.T) {
	s := tiny(t, "0,1,1\n600,1,1\n")
	start := s.Scenario.Pool.Start
	start.Fail = 0
	s.Scenario.Pool.Start = start
	sim, err := newSimulation(s, true)
	if err != nil {
		t.Fatal(err)
	}
	below, took := 0, time.Duration(0)
	const n = 500
	for range n {
		r := sim.pools[0].add()
		took = r.coldStart()
		if took != r.coldStart() {
			t.Fatal("the same start takes another time")
		}
		if took < start.Min || took > start.Max {
			t.Fatalf("a start takes %v, want %v to %v", took, start.Min, start.Max)
		}
		if took < start.Median {
			below++
		}
	}
	if below < n*4/10 || below > n*6/10 {
		t.Errorf("%d of %d starts are faster than the median", below, n)
	}
	sim.setup.Scenario.Pool.Start.Fail = 1
	if twice := sim.replicas[len(sim.replicas)-1].coldStart(); twice <= took {
		t.Errorf("a start that fails once takes %v, one that does not %v", twice, took)
	}
}

// A pool asked for more replicas has them after their cold starts, and pays from
// the time they were asked for; with fewer, it drains some.
func TestScaling(t *testing.T) {
	s := bundled(t, "s11-from-zero.yaml")
	s.Scenario.Jobs = []scenario.Job{{Name: "j", Kind: "score", At: 10 * time.Minute,
		Window: 2 * time.Hour, Lines: 5000}}
	s.Scenario.Horizon = 4 * time.Hour
	s.Policy.Scale.Policy = ""
	r := result(t, s)
	if r.Jobs[0].Outcome != Finished || r.GPUHours <= 0 || r.GPUHours > 4 ||
		r.NoBatchGPUHours != 0 {
		t.Errorf("%+v for %v replica hours, %v without it", r.Jobs[0], r.GPUHours,
			r.NoBatchGPUHours)
	}
	if len(r.Pools) != 1 || r.Pools[0].Started == 0 || r.Pools[0].Cost != r.Pools[0].Hours {
		t.Errorf("pools %+v", r.Pools)
	}
}

// A router whose view is old adds what it has sent itself, so it spreads
// requests that arrive together.
func TestRouterView(t *testing.T) {
	trace := "0,1,1\n"
	for range 8 {
		trace += "100.5,64,400\n"
	}
	s := tiny(t, trace+"600,1,1\n")
	s.Scenario.Pool.Replicas, s.Scenario.Pool.RouterView = 4, time.Second
	sim, err := newSimulation(s, false)
	if err != nil {
		t.Fatal(err)
	}
	sim.run(epoch.Add(101 * time.Second))
	for _, r := range sim.replicas {
		if r.inside != 2 {
			t.Errorf("%s has %d of 8 requests, want 2", r.name, r.inside)
		}
	}
}

// What the provider takes back is asked for again where the number of replicas
// is fixed.
func TestReclaim(t *testing.T) {
	s := tiny(t, "0,1,1\n200,1,1\n600,1,1\n")
	s.Scenario.BatchPools = []scenario.BatchPool{{Name: "spot", Replicas: 50,
		Scaling: scenario.Scaling{Reclaim: 0.5, Price: 1}}}
	s.Scenario.Horizon = 9 * time.Minute
	s.Scenario.Pool.Start = scenario.Start{Median: time.Second, Min: time.Second,
		Max: time.Second}
	r := result(t, s)
	// Of 50 in nine minutes, 0.5 in an hour: 50·(1-0.5^0.15) = 5.
	if got := r.Pools[1].Started; got < 1 || got > 12 {
		t.Errorf("%d of 50 replicas were replaced in nine minutes, want about 5", got)
	}
	if want := 50 * 0.15; math.Abs(r.Pools[1].Hours-want) > 0.01 {
		t.Errorf("paid for %v replica hours, want %v", r.Pools[1].Hours, want)
	}
}

// One of two replicas crashes with lines in flight and restarts.
func TestCrashLog(t *testing.T) {
	const golden = "testdata/crash.log"
	s := shortScenario()
	s.Scenario.Name, s.Scenario.Pool.Replicas = "crash", 2
	s.Scenario.Jobs[0].Lines, s.Scenario.Jobs[0].Window = 24, 0
	s.Scenario.Faults = []scenario.Fault{{At: 40 * time.Second, Kind: scenario.Crash,
		Replicas: []int{1}, For: 20 * time.Second}}
	var got bytes.Buffer
	s.Outputs.Events = &got
	result(t, s)
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("event log (-want +got), -update rewrites it:\n%s", diff)
	}
}

// Crashes, reclaims, starts and drains are the same each time.
func TestFaultsRepeat(t *testing.T) {
	for _, file := range []string{"s7-runner-loss.yaml", "s10-two-pools.yaml",
		"s17-closed-loop.yaml"} {
		s := bundled(t, file, horizon(35*time.Minute), fixed(8))
		for i := range s.Scenario.BatchPools {
			s.Scenario.BatchPools[i].Replicas, s.Scenario.BatchPools[i].Reclaim = 6, 0.9
		}
		first, again := encodeJSON(t, result(t, s)), encodeJSON(t, result(t, s))
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("%s gives another result the second time:\n%s", file, diff)
		}
	}
}
