package simulator

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// A histogram with a bound at the objective counts the same late requests as a gateway that knows
// the objective, and both count what the users got. A histogram whose bounds are far from the
// objective is inaccurate.
func TestGatewayCountsWhatUsersGet(t *testing.T) {
	counted := func(kind scenario.Gateway, edges ...time.Duration) (ttft, tpot, late, slow float64,
		users Interactive) {
		s := bundled(t, "s1-steady.yaml", horizon(10*time.Minute), fixed(40), func(s *Setup) {
			s.Scenario.Interactive.SLO.TTFT, s.Scenario.Interactive.SLO.TTFTPer1K = time.Second, 0
			s.Scenario.Interactive.SLO.TPOT = 95 * time.Millisecond
			s.Scenario.Metrics.Gateway, s.Scenario.Metrics.TTFTBuckets = kind, edges
		})
		sim, _, err := simulate(s, true, silent)
		if err != nil {
			t.Fatal(err)
		}
		r := sim.interactive.gateway.reading(sim.end)
		return r.TTFT.Requests, r.TPOT.Requests, r.TTFT.Late, r.TPOT.Late, sim.interactive.report()
	}
	ttft, tpot, late, slow, users := counted(scenario.GatewayCounters)
	if late == 0 || slow == 0 || ttft < float64(users.Requests) ||
		late < float64(users.MissedTTFT) || slow < float64(users.MissedTPOT) {
		t.Errorf(
			"%v of %v late, %v of %v slow; the users, without the first and last minute, say %+v",
			late, ttft, slow, tpot, users)
	}
	ttft2, tpot2, late2, slow2, _ := counted(scenario.GatewayHistogram)
	if ttft2 != ttft || tpot2 != tpot || late2 != late || slow2 != slow {
		t.Errorf(
			"a histogram with a bound at the objective counts %v of %v late, %v of %v slow; "+
				"counters say %v of %v, %v of %v",
			late2, ttft2, slow2, tpot2, late, ttft, slow, tpot)
	}
	if _, _, off, _, _ := counted(scenario.GatewayHistogram, 100*time.Millisecond,
		5*time.Second); off < 2*late {
		t.Errorf(
			"a histogram with bounds far from the objective counts %v late, counters %v, want a "+
				"difference",
			off, late)
	}
}

// A contaminated gateway counts batch lines with interactive requests.
func TestContaminatedGatewayCountsLines(t *testing.T) {
	read := func(kind scenario.Gateway, pool string) (flowcontrol.Reading, int) {
		s := bundled(t, "s1-steady.yaml", horizon(5*time.Minute), fixed(10))
		s.Scenario.Metrics.Gateway = kind
		if pool != "" {
			s.Scenario.BatchPools = []scenario.BatchPool{{Name: pool, Replicas: 1}}
		}
		sim, _, err := simulate(s, true, silent)
		if err != nil {
			t.Fatal(err)
		}
		finished := 0
		for _, x := range sim.pools[0].replicas {
			finished += int(x.engine.Snapshot(sim.end).Finished)
		}
		return sim.interactive.gateway.reading(sim.end), finished
	}
	answered := func(r flowcontrol.Reading) float64 {
		return r.AnswerLengths[len(r.AnswerLengths)-1].Count
	}
	alone, _ := read(scenario.GatewayHistogram, "")
	all, finished := read(scenario.GatewayContaminated, "")
	if a := answered(all); a < float64(finished)-50 || a > float64(finished) ||
		a < 1.2*answered(alone) {
		t.Errorf("%v answers are counted, %v of them interactive, of %d", a, answered(alone),
			finished)
	}
	if all.TTFT.Requests <= alone.TTFT.Requests || all.TPOT.Requests <= alone.TPOT.Requests {
		t.Errorf("with lines %+v and %+v, without %+v and %+v", all.TTFT, all.TPOT, alone.TTFT,
			alone.TPOT)
	}
	// Lines of a further pool do not pass through the gateway.
	if spot, first := read(scenario.GatewayContaminated, "spot"); answered(spot) > float64(first) {
		t.Errorf("%v answers are counted, of %d in the pool", answered(spot), first)
	}
}
