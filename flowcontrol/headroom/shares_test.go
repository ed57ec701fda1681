package headroom

import "testing"

// mostInTime is a distribution of which most are well below the objective, some are just below it,
// and some are above.
func mostInTime() (s shares) {
	s.fade(noon)
	s.add(0.3, 80)
	s.add(0.7, 10)
	s.add(0.9, 10)
	s.add(1.5, 20)
	return s
}

func TestThresholdLeavesAShareAbove(t *testing.T) {
	s := mostInTime()
	for _, test := range []struct{ requests, want float64 }{
		{0, 0.92},  // nothing may lie between: the end of the bin of the highest
		{5, 0.91},  // half of that bin
		{10, 0.72}, // all of it, and none of the next
		{15, 0.71}, // half of the next
		{100, 0},
	} {
		if got := s.threshold(test.requests / 120); !near(got+1, test.want+1) {
			t.Errorf("threshold of %v requests of 120: %v, want %v", test.requests, got, test.want)
		}
	}
}

func TestBetweenEndsAtTheObjective(t *testing.T) {
	s := mostInTime()
	for _, test := range []struct{ from, requests float64 }{
		{0, 100}, {0.5, 20}, {0.9, 10}, {0.91, 5}, {0.95, 0},
	} {
		if got := 120 * s.between(test.from); !near(got+1, test.requests+1) {
			t.Errorf("%v requests from %v on, want %v", got, test.from, test.requests)
		}
	}
}

func TestSharesFade(t *testing.T) {
	s := mostInTime()
	s.fade(noon.Add(10 * shareMemory))
	s.add(0.7, 60) // more than is left of all before
	if got := s.between(0.6); got < 0.8 || got > 1 {
		t.Errorf("a share of %v is new, want nearly all", got)
	}
	if got := s.quantile(0.5); !near(got, 0.72) {
		t.Errorf("half exceed %v, want 0.72", got)
	}
}

func TestSpreadIsEven(t *testing.T) {
	var s shares
	s.spread(0.2, 1.0, 80)
	if got := 80 * s.between(0.6); !near(got, 40) || !near(s.total, 80) {
		t.Errorf("%v of %v are in the upper half, want 40 of 80", got, s.total)
	}
}
