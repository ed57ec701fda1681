package simulator

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestScore(t *testing.T) {
	for _, test := range []struct{ harvest, best, loss, want float64 }{
		{80, 100, -0.2, 0.8}, {80, 100, 1, 0.8}, {120, 100, 0, 1.2}, {0, 100, 0, 0},
		{80, 100, 1.5, -0.5}, {500, 100, 2, -1}, {80, 100, 51, -50}, {80, 0, 2, -1},
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

// However much an unsafe run harvests, and however little a safe one, it scores less.
func TestUnsafeNeverScoresAboveSafe(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		best := 1 + 100*rng.Float64()
		safe := Score(best*rng.Float64()*float64(rng.IntN(2)), best, 2*rng.Float64()-1)
		one := 1 + 30*rng.Float64()*rng.Float64() + 1e-9
		other := one + 30*rng.Float64() + 1e-9
		unsafe := Score(10*best*rng.Float64(), best, one)
		worse := Score(10*best*rng.Float64(), best, other)
		if !(unsafe < safe && worse < unsafe) {
			t.Fatalf("a safe run scores %v, %v points %v, %v points %v", safe, one, unsafe, other,
				worse)
		}
		if mean := MeanScore([]float64{safe, unsafe}); !(mean < 0) {
			t.Fatalf("the mean of %v and %v is %v, want less than 0", safe, unsafe, mean)
		}
		if overall := Overall([]float64{10 * safe, unsafe}, false); !(overall < 0) {
			t.Fatalf("%v and %v are %v over all, want less than 0", 10*safe, unsafe, overall)
		}
	}
}

func TestMeanScore(t *testing.T) {
	for _, test := range []struct {
		scores []float64
		want   float64
	}{
		{[]float64{0.5, 0.7}, 0.6}, {[]float64{0.5, -0.2}, -0.1}, {[]float64{-1, -0.5}, -0.75},
	} {
		if got := MeanScore(test.scores); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("MeanScore(%v) = %v, want %v", test.scores, got, test.want)
		}
	}
	if got := MeanScore([]float64{0.5, math.NaN()}); !math.IsNaN(got) {
		t.Errorf("the mean of an unknown score is %v", got)
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
		{[]float64{0.9, -0.3, 0.9}, false, -0.1}, {[]float64{-4, -2}, true, -3},
		{[]float64{-4, nan}, false, -4},
	} {
		got := Overall(test.scores, test.missed)
		if math.IsNaN(got) != math.IsNaN(test.want) || math.Abs(got-test.want) > 1e-12 {
			t.Errorf("Overall(%v, %v) = %v, want %v", test.scores, test.missed, got, test.want)
		}
	}
}

// A loss of exactly a point is allowed everywhere, though 1 - 0.99 is a little more than 0.01.
func TestALossOfAPointIsSafe(t *testing.T) {
	noBatch := NoBatch{Interactive: Interactive{Requests: 1000, Attainment: share(1000, 1000)}}
	for attained, want := range map[int]float64{990: 1, 989: 1.1, 1000: 0} {
		r := Result{Interactive: Interactive{Requests: 1000, Attainment: share(attained, 1000)}}
		r.Compare(noBatch)
		if math.Abs(r.Loss-want) > 1e-9 || (r.Loss > MaxLoss) != (want > MaxLoss) {
			t.Errorf("%d of 1000: a loss of %v points, want %v", attained, r.Loss, want)
		}
		if unsafe := Score(80, 100, r.Loss) < 0; unsafe != (want > MaxLoss) {
			t.Errorf("%d of 1000: the score is %v", attained, Score(80, 100, r.Loss))
		}
	}
}

func TestGeometricMeanOfManyValues(t *testing.T) {
	repeat := func(n int, values ...float64) []float64 { return slices.Repeat(values, n) }
	for _, test := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"2,000 times 0.5", repeat(2000, 0.5), 0.5}, {"5,000 times 1.3", repeat(5000, 1.3), 1.3},
		{"300 times 0.01", repeat(300, 0.01), 0.01},
		{"products that leave the range and come back",
			slices.Concat(repeat(400, 0.1), repeat(400, 10)), 1},
		{"a zero among large values", append(repeat(5000, 1.3), 0), 0},
		{"products near the least", repeat(1, 1e-200, 1e-110), 1e-155},
	} {
		if got := GeometricMean(test.values); !(math.Abs(got-test.want) <= 1e-12*test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
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
