package simulator

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// quietRun runs a scenario without batch work and returns how its users fared.
func quietRun(t *testing.T, s Setup) (Interactive, *simulation) {
	t.Helper()
	sim, _, err := simulate(s, false, silent)
	if err != nil {
		t.Fatal(err)
	}
	return sim.interactive.report(), sim
}

// On generated conversations and chats, expected-load is no worse than least-requests; it finds
// more prompts in caches where there are any, and knows how many.
func TestExpectedLoadIsNotWorseThanLeastRequests(t *testing.T) {
	for _, test := range []struct {
		file string
		hits float64 // as a multiple of those of least-requests, min
	}{{"s1-steady.yaml", 0}, {"s12-long-context.yaml", 3}, {"s24-shared-prefixes.yaml", 0.99},
		{"s25-tight.yaml", 0}, {"s16-kv-bound.yaml", 0}} {
		var got, other Interactive
		for seed := range uint64(2) {
			s := bundled(t, test.file, horizon(10*time.Minute))
			s.Seed = seed + 1
			s.Scenario.Pool.Router = scenario.LeastRequests
			counted, _ := quietRun(t, s)
			s.Scenario.Pool.Router = scenario.ExpectedLoad
			weighed, sim := quietRun(t, s)
			for _, x := range []struct{ sum, add *Interactive }{{&got, &weighed},
				{&other, &counted}} {
				x.sum.Attainment += x.add.Attainment / 2
				x.sum.TTFT.P95 += x.add.TTFT.P95 / 2
				x.sum.PrefixHitRate += x.add.PrefixHitRate / 2
			}
			found := 0.0
			for _, r := range sim.replicas {
				found += float64(r.engine.Snapshot(sim.now).PrefixHits)
			}
			// In s24 prompts also share parts of the router's blocks.
			if e := float64(sim.expected.cached); e > 1.05*found || e < 0.85*found {
				t.Errorf("%s: %.0f tokens were expected in caches, and %.0f were there", test.file,
					e, found)
			}
		}
		t.Logf("%-26s attainment %.4f, of least-requests %.4f; TTFT p95 %.0f, %.0f ms; hits %.3f, "+
			"%.3f", test.file, got.Attainment, other.Attainment, got.TTFT.P95, other.TTFT.P95,
			got.PrefixHitRate, other.PrefixHitRate)
		if got.Attainment < other.Attainment-0.0005 || got.TTFT.P95 > 1.02*other.TTFT.P95 ||
			got.PrefixHitRate < test.hits*other.PrefixHitRate {
			t.Errorf("%s: expected-load is worse than least-requests", test.file)
		}
	}
}

// What a replica has lost with a crash is not expected in its cache.
func TestExpectedLoadForgetsCachesOfLostReplicas(t *testing.T) {
	for _, crash := range []bool{false, true} {
		s := tiny(t, "0,20,5\n")
		s.Trace = groupTrace(t, "0,600,5,7,512\n70,600,5,7,512\n170,20,5,,\n")
		s.Scenario.Pool.Router, s.Scenario.Pool.Replicas = scenario.ExpectedLoad, 1
		s.Scenario.Horizon = 160 * time.Second
		if crash {
			s.Scenario.Faults = []scenario.Fault{{At: 30 * time.Second, Kind: scenario.Crash,
				For: 10 * time.Second}}
		}
		want := int64(512)
		if crash {
			want = 0
		}
		if r, sim := quietRun(t, s); sim.expected.cached != want || r.Lost > 0 ||
			r.PrefixHitRate > 0 != !crash {
			t.Errorf("crash %v: %d tokens were expected, want %d; hits %v, %d lost", crash,
				sim.expected.cached, want, r.PrefixHitRate, r.Lost)
		}
	}
}

// checkExpectedWork checks that the work of each replica is that of the requests inside.
func checkExpectedWork(t *rapid.T, sim *simulation) {
	if sim.expected == nil {
		return
	}
	want := map[*replica]float64{}
	for _, req := range sim.requests {
		want[req.replica] += req.work.prompt + req.work.answer
	}
	for _, r := range sim.replicas {
		if math.Abs(r.work-want[r]) > 1e-6*(1+want[r]) {
			t.Fatalf("%s is expected to carry %v ms of work, its requests %v", r.name, r.work,
				want[r])
		}
	}
}
