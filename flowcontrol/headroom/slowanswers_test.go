package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// An objective that allows far more than engines take on average is no mistake if the slowest
// answers, which meet long prompts of others, take half of it. Iterations stay within four times
// their mean nevertheless.
func TestObjectivesOfSlowAnswers(t *testing.T) {
	for _, test := range []struct {
		slowest         float64 // milliseconds
		objective, most float64
		warns           bool
	}{{30, 120, 120, true}, {100, 200, 120, true}, {400, 500, 120, false}} {
		c, _ := newPool(t, func(cfg *flowcontrol.Config) {
			cfg.SLO.TPOT = 500 * time.Millisecond
		}, "r")
		c.alone.iteration.value, c.alone.iteration.age = 30, 600
		c.target.fix(0.9)
		c.target.prefill.fixed = false
		c.answersAlone.addAnswers(30, 0, 500, 95)
		c.answersAlone.addAnswers(test.slowest, 0, 500, 5)
		if got := c.objectiveTime(); got < test.objective || got > 1.1*test.objective {
			t.Errorf("slowest %v ms: the objective is %v ms", test.slowest, got)
		}
		lowered := map[bool]float64{true: 500}[test.objective < 500]
		if got := termOf(t, c, noon, flowcontrol.TermConfigured); got != lowered {
			t.Errorf("slowest %v ms: lowered from %v ms, want %v", test.slowest, got, lowered)
		}
		if got := c.targetTime(); got > test.most {
			t.Errorf("slowest %v ms: the target is %v ms", test.slowest, got)
		}
		if got := c.Warnings(noon); len(got) > 0 != test.warns {
			t.Errorf("slowest %v ms: warned of %v", test.slowest, got)
		}
	}
}

// The answers of a long reading differ, though only their mean is known.
func TestSlowAnswersOfLongReadings(t *testing.T) {
	for variance, want := range map[float64]float64{0: 0.32, 100: 0.72} {
		var s shares
		s.addAnswers(30, variance, 100, 1000)
		if got := s.quantile(slowest); got < want-0.03 || got > want+0.03 {
			t.Errorf("variance %v: the slowest take %v of the objective", variance, got)
		}
	}
}

// What the iterations of runners show counts, by how long they would have taken without lines.
func TestSlowAnswersAreThoseOfIterations(t *testing.T) {
	c, runners := newPool(t, nil, "r")
	for i := range 100 {
		ms := 40.0
		if i%20 == 0 {
			ms = 90
		}
		c.countVirtual(noon.Add(time.Duration(i)*time.Minute), runners[0], 400, ms, 0)
	}
	if got := c.slowAnswers(); got < 85 || got > 95 {
		t.Errorf("the slowest answers take %v ms, want 90", got)
	}
}
