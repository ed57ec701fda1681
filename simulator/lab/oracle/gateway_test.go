package oracle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/simulator"
	_ "github.com/tidefill/tidefill/simulator/lab/policies"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// E bounds G, since G controls from outside what E controls from inside. G bounds every policy
// within the allowed loss, since G knows the future.
func TestOraclesBoundPolicies(t *testing.T) {
	for _, kind := range []string{"bal", "score"} {
		s := smallPool(t, kind, nil)
		s.Policy = defaultPolicy()
		noBatch := runNoBatch(t, s)
		var seen []PriorRun
		for _, change := range []func(*simulator.Policy){
			func(p *simulator.Policy) { p.Flow.Policy = "headroom" },
			func(p *simulator.Policy) {
				p.Flow = p.Flow.Select(fixed.Name, fixed.Config{PerRunner: 8})
			},
			func(p *simulator.Policy) { p.Flow.Policy = "model" },
		} {
			seen = append(seen, watched(t, s, noBatch, change))
		}
		gateway, err := Gateway(s, noBatch, seen, Budget{Runs: 30})
		if err != nil {
			t.Fatal(err)
		}
		engine, err := Engine(s, noBatch, Budget{Runs: 8})
		if err != nil {
			t.Fatal(err)
		}
		outside, inside := gateway.Bound, engine.Bound
		if outside.Name != "G" || outside.Useful == 0 || outside.Work == 0 ||
			outside.Loss > MaxLoss || outside.Note == "" {
			t.Errorf("%s: %+v", kind, outside)
		}
		if inside.BeatenBy(outside.Useful, outside.Loss) {
			t.Errorf("%s: E is %+v, G %+v", kind, inside, outside)
		}
		for _, run := range seen {
			if r := run.Result; outside.BeatenBy(float64(r.Batch.Useful), r.Loss) {
				t.Errorf("%s: policy %s harvests %d at %.2f points, G is %+v", kind, r.Flow,
					r.Batch.Useful, r.Loss, outside)
			}
		}
		for _, found := range []Finding{gateway, engine} {
			if same, err := found.Reproduces(s, noBatch); err != nil || !same {
				t.Errorf("%s: oracle %s's best does not reproduce: %v", kind,
					found.Bound.Name, err)
			}
			other := s
			other.Profile.CostModel.C0 *= 1.001
			if same, err := found.Reproduces(other, noBatch); err != nil || same {
				t.Errorf(
					"%s: oracle %s's best reproduces on another engine: %v",
					kind, found.Bound.Name, err)
			}
		}
	}
}

// A run that no schedule beats is the bound, and the note names it.
func TestGatewayIsAtLeastThePriorRuns(t *testing.T) {
	s := smallPool(t, "bal", func(s *scenario.Scenario) { s.Horizon = 3 * time.Minute })
	s.Policy = defaultPolicy()
	noBatch := runNoBatch(t, s)
	miracle := watched(t, s, noBatch, func(p *simulator.Policy) { p.Flow.Policy = "model" })
	miracle.Result.Flow, miracle.Result.Batch = "miracle", simulator.Batch{Useful: 1e9, Work: 5}
	for loss, floor := range map[float64]bool{1: true, 1.01: false} {
		miracle.Result.Loss = loss
		found, err := Gateway(s, noBatch, []PriorRun{miracle}, Budget{Runs: 3})
		if err != nil {
			t.Fatal(err)
		}
		bound := found.Bound
		if got := bound.Useful == 1e9 && bound.Work == 5 &&
			bound.Note == "the run of policy miracle, which no schedule beats"; got != floor {
			t.Errorf("a miracle at %v points: %+v, floor should be %v", loss, bound, floor)
		}
	}
}

// However few runs there are, what a policy was seen to do is where the search begins, and what it
// did can be read from its timeline.
func TestGatewayStartsFromPriorRuns(t *testing.T) {
	s := smallPool(t, "bal", func(s *scenario.Scenario) {
		s.Horizon, s.Pool.Replicas, s.Interactive.Rate = 12*time.Minute, 3, 1.2
		s.Faults = []scenario.Fault{{At: 5 * time.Minute, Kind: scenario.Crash, Replicas: []int{1}}}
	})
	s.Policy = defaultPolicy()
	noBatch := runNoBatch(t, s)
	prior := watched(t, s, noBatch, func(p *simulator.Policy) { p.Flow.Policy = "headroom" })
	g := newGatewaySearch(s, noBatch, Budget{Runs: 2})
	g.prior = []PriorRun{prior}
	if err := g.run(); err != nil {
		t.Fatal(err)
	}
	own, imitation := g.tried[0], g.tried[1]
	if own.useful != float64(prior.Result.Batch.Useful) || own.family != byLate || g.runs != 2 {
		t.Errorf("the first of %d runs is %+v, want what was seen", g.runs, own.trial)
	}
	if imitation.family != byTime || len(imitation.level) != g.windows ||
		imitation.useful < own.useful/2 {
		t.Errorf("what headroom did harvests %v of its %v", imitation.useful, own.useful)
	}
	found, err := Gateway(s, noBatch, []PriorRun{prior}, Budget{Runs: 2})
	if err != nil {
		t.Fatal(err)
	}
	if r := prior.Result; r.Loss <= MaxLoss && found.Bound.Useful < float64(r.Batch.Useful) {
		t.Errorf("G is %+v, and headroom harvested %d at %.2f points", found.Bound, r.Batch.Useful,
			r.Loss)
	}
}

func TestGatewayRepeatsWithinItsBudget(t *testing.T) {
	s := smallPool(t, "bal", func(s *scenario.Scenario) { s.Horizon = 4 * time.Minute })
	s.Policy = defaultPolicy()
	noBatch := runNoBatch(t, s)
	search := func() *gatewaySearch {
		reports := 0
		g := newGatewaySearch(s, noBatch, Budget{Runs: 40, Progress: func(float64) error {
			reports++
			return nil
		}})
		if err := g.run(); err != nil {
			t.Fatal(err)
		}
		if g.runs != 40 || reports != 40 {
			t.Errorf("%d runs, %d reports of progress, want 40", g.runs, reports)
		}
		return g
	}
	one, other := search(), search()
	if !cmp.Equal(one.best.policy(one.window), other.best.policy(other.window)) ||
		!cmp.Equal(one.best.useful, other.best.useful) {
		t.Errorf("one search found %v, another %v", one.best.level, other.best.level)
	}
}

// Where all the work there is can be done, there is nothing to search for.
func TestOraclesStopWhenAllWorkIsDone(t *testing.T) {
	s := smallPool(t, "score", func(s *scenario.Scenario) {
		s.Horizon = 5 * time.Minute
		s.Jobs = []scenario.Job{{Name: "few", Kind: "score", Lines: 20}}
	})
	s.Policy = defaultPolicy()
	noBatch := runNoBatch(t, s)
	runs := 0
	budget := Budget{Runs: 100, Progress: func(float64) error { runs++; return nil }}
	engine, err := Engine(s, noBatch, budget)
	if err != nil {
		t.Fatal(err)
	}
	gateway, err := Gateway(s, noBatch, nil, budget)
	if err != nil {
		t.Fatal(err)
	}
	if inside, outside := engine.Bound, gateway.Bound; inside.Useful != 20*712 ||
		outside.Useful != 20*712 || runs > 10 {
		t.Errorf("E %+v, G %+v after %d runs; there are %d tokens to be had", inside, outside, runs,
			20*712)
	}
}

func TestEngineBoundsNothingWhereReplicasFollowPolicies(t *testing.T) {
	s := smallPool(t, "bal", func(s *scenario.Scenario) { s.Pool.Min, s.Pool.Max = 1, 3 })
	found, err := Engine(s, simulator.NoBatch{}, Budget{Runs: 1})
	bound := found.Bound
	if err != nil || bound.Useful != 0 || bound.Note == "" {
		t.Errorf("%+v, %v", bound, err)
	}
}
