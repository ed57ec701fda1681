package oracle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// E is above G, and G above every policy that keeps to the loss, for they do from outside what E does from inside, and G knows the day.
func TestOraclesStandAbovePolicies(t *testing.T) {
	for _, kind := range []string{"bal", "score"} {
		s := small(t, kind, nil)
		s.Policy = defaultPolicy()
		quiet := quietly(t, s)
		var seen []simulator.Result
		for _, change := range []func(*simulator.Policy){
			func(p *simulator.Policy) { p.Flow.Policy = "probe" },
			func(p *simulator.Policy) { p.Flow.Policy, p.Flow.Fixed.PerRunner = "fixed", 8 },
			func(p *simulator.Policy) { p.Flow.Policy = "model" },
		} {
			seen = append(seen, policyRun(t, s, quiet, change))
		}
		outside, cfg, err := Gateway(s, quiet, seen, Budget{Runs: 30})
		if err != nil {
			t.Fatal(err)
		}
		inside, err := Engine(s, quiet, Budget{Runs: 8})
		if err != nil {
			t.Fatal(err)
		}
		if outside.Name != "G" || outside.Useful == 0 || outside.Work == 0 || outside.Loss > MostLoss || outside.Note == "" {
			t.Errorf("%s: %+v", kind, outside)
		}
		if inside.BeatenBy(outside.Useful, outside.Loss) {
			t.Errorf("%s: E is %+v, G %+v", kind, inside, outside)
		}
		for _, r := range seen {
			if outside.BeatenBy(float64(r.Batch.Useful), r.Loss) {
				t.Errorf("%s: policy %s harvests %d at %.2f points, G is %+v", kind, r.Flow, r.Batch.Useful, r.Loss, outside)
			}
		}
		if again := policyRun(t, s, quiet, func(p *simulator.Policy) { p.Flow = cfg }); float64(again.Batch.Useful) > outside.Useful || again.Loss > MostLoss {
			t.Errorf("%s: the timetable told again harvests %d at %.2f points, want what was found, %+v", kind, again.Batch.Useful, again.Loss, outside)
		}
	}
}

// A run that no timetable beats is the floor, and the note says so.
func TestGatewayTakesNoLessThanWasSeen(t *testing.T) {
	s := small(t, "bal", func(s *scenario.Scenario) { s.Horizon = 3 * time.Minute })
	s.Policy = defaultPolicy()
	quiet := quietly(t, s)
	miracle := simulator.Result{Flow: "miracle", Loss: 1, Batch: simulator.Batch{Useful: 1e9, Work: 5}}
	for loss, floor := range map[float64]bool{1: true, 1.01: false} {
		miracle.Loss = loss
		bound, _, err := Gateway(s, quiet, []simulator.Result{miracle}, Budget{Runs: 3})
		if err != nil {
			t.Fatal(err)
		}
		if got := bound.Useful == 1e9 && bound.Work == 5 && bound.Note == "the run of policy miracle, which none of 3 timetables beat"; got != floor {
			t.Errorf("a miracle at %v points: %+v, floor should be %v", loss, bound, floor)
		}
	}
}

func TestGatewayTellsTheSameTwiceWithinItsBudget(t *testing.T) {
	s := small(t, "bal", func(s *scenario.Scenario) { s.Horizon = 4 * time.Minute })
	s.Policy = defaultPolicy()
	quiet := quietly(t, s)
	search := func() *gatewaySearch {
		told := 0
		g := newGatewaySearch(s, quiet, Budget{Runs: 40, Progress: func(float64) error { told++; return nil }})
		if err := g.run(); err != nil {
			t.Fatal(err)
		}
		if g.runs != 40 || told != 40 {
			t.Errorf("%d runs, told %d times, want 40", g.runs, told)
		}
		return g
	}
	one, other := search(), search()
	if !cmp.Equal(one.config(one.best), other.config(other.best)) || !cmp.Equal(one.best.useful, other.best.useful) {
		t.Errorf("one search found %v, another %v", one.config(one.best), other.config(other.best))
	}
}

// Where all the work there is can be done, there is nothing to search for.
func TestOraclesStopWhenNothingIsLeft(t *testing.T) {
	s := small(t, "score", func(s *scenario.Scenario) {
		s.Horizon = 5 * time.Minute
		s.Jobs = []scenario.Job{{Name: "few", Kind: "score", Lines: 20}}
	})
	s.Policy = defaultPolicy()
	quiet := quietly(t, s)
	runs := 0
	budget := Budget{Runs: 100, Progress: func(float64) error { runs++; return nil }}
	inside, err := Engine(s, quiet, budget)
	if err != nil {
		t.Fatal(err)
	}
	outside, _, err := Gateway(s, quiet, nil, budget)
	if err != nil {
		t.Fatal(err)
	}
	if inside.Useful != 20*712 || outside.Useful != 20*712 || runs > 10 {
		t.Errorf("E %+v, G %+v after %d runs; there are %d tokens to be had", inside, outside, runs, 20*712)
	}
}

func TestEngineBoundsNothingWhereReplicasFollowPolicies(t *testing.T) {
	s := small(t, "bal", func(s *scenario.Scenario) { s.Pool.Min, s.Pool.Max = 1, 3 })
	bound, err := Engine(s, simulator.Quiet{}, Budget{Runs: 1})
	if err != nil || bound.Useful != 0 || bound.Note == "" {
		t.Errorf("%+v, %v", bound, err)
	}
}
