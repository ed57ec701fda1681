package simulator

import (
	"math"
	"testing"
	"time"
)

func TestScore(t *testing.T) {
	for _, test := range []struct{ harvest, best, loss, want float64 }{
		{80, 100, -0.2, 0.8}, {80, 100, 1, 0.8}, {80, 100, 2, 0.4}, {80, 100, 3, 0},
		{80, 100, 50, 0}, {120, 100, 0, 1.2}, {0, 100, 0, 0},
	} {
		if got := Score(test.harvest, test.best, test.loss); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("Score(%v of %v at %v points) = %v, want %v", test.harvest, test.best,
				test.loss, got, test.want)
		}
	}
	if got := Score(80, 0, 0); !math.IsNaN(got) {
		t.Errorf("Score without a best is %v", got)
	}
}

func TestOverall(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct {
		scores []float64
		missed bool
		want   float64
	}{
		{[]float64{0.5, 0.5}, false, 0.5}, {[]float64{0.9, 0.4}, false, 0.6},
		{[]float64{0.9, 0}, false, 0}, {[]float64{1, 1}, true, 0.8},
		{[]float64{0.9, nan, 0.4}, true, 0.6}, {[]float64{2, 8, 4}, false, 4},
		{[]float64{nan}, false, nan}, {nil, true, nan},
	} {
		got := Overall(test.scores, test.missed)
		if math.Abs(got-test.want) > 1e-12 || math.IsNaN(got) != math.IsNaN(test.want) {
			t.Errorf("Overall(%v, %v) = %v, want %v", test.scores, test.missed, got, test.want)
		}
	}
}

func TestWorstLoss(t *testing.T) {
	minutes := func(attained ...int) []minute {
		var all []minute
		for _, n := range attained {
			all = append(all, minute{judged: 10, attained: n})
		}
		return all
	}
	without := minutes(10, 10, 10, 10, 10, 10, 0, 10)
	busy := minutes(10, 10, 10, 5, 10, 10, 0, 10)
	// Five minutes of fifty requests lose five; the minute that is bad without batch work is not
	// counted.
	if points, at := worstLoss(without, busy); math.Abs(points-10) > 1e-9 || at != time.Minute {
		t.Errorf("worst loss %v points at %s, want 10 at 1m", points, at)
	}
	if points, _ := worstLoss(minutes(10), minutes(9)); math.Abs(points-10) > 1e-9 {
		t.Errorf("one minute lost %v points, want 10", points)
	}
}
