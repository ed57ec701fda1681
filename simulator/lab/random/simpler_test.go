package random_test

import (
	"testing"

	"github.com/tidefill/tidefill/simulator/lab/random"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// A scenario of defaults is as simple as it gets, but for its length.
func TestSimplifyingEnds(t *testing.T) {
	pool := source(t, "any", 1).Sketch(2)
	for range 60 {
		steps := random.Simplify(pool.Scenario)
		if len(steps) == 0 {
			s := pool.Scenario
			if s.Pool.Replicas != 1 || len(s.Jobs) != 1 || s.Jobs[0].Kind != "bal" ||
				s.Interactive.SLO != scenario.Default().Interactive.SLO ||
				s.Pool.CostModelError != (scenario.CostModelError{}) {
				t.Errorf("nothing is left to simplify in %+v", s)
			}
			return
		}
		pool.Scenario = steps[0].Scenario
		if steps[0].Name == "" {
			t.Error("a simplification has no name")
		}
	}
	t.Error("60 simplifications are not enough")
}

func TestSimplifyingDoesNotChangeTheWhole(t *testing.T) {
	for number := range 50 {
		from := source(t, "any", 1)
		whole, again := from.Sketch(number).Scenario, from.Sketch(number).Scenario
		random.Simplify(whole)
		if len(random.Simplify(whole)) != len(random.Simplify(again)) {
			t.Errorf("pool %d has changed", number)
		}
	}
}

func TestFewerRunnersGetLessTraffic(t *testing.T) {
	pool := source(t, "steady", 1)
	for number := range 100 {
		s := pool.Sketch(number).Scenario
		if s.Pool.Replicas != 8 {
			continue
		}
		for _, simpler := range random.Simplify(s) {
			if n := simpler.Scenario.Pool.Replicas; n == 1 &&
				simpler.Scenario.Interactive.Rate > s.Interactive.Rate/7 {
				t.Errorf("1 of 8 runners gets %v of %v requests", simpler.Scenario.Interactive.Rate,
					s.Interactive.Rate)
			}
		}
		return
	}
	t.Fatal("no pool has 8 runners")
}
