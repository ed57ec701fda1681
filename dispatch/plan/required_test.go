package plan

import (
	"math"
	"testing"
	"time"
)

func TestRequiredLines(t *testing.T) {
	of := func(id string, work float64, due time.Duration) *job {
		return &job{id: id, lines: 1, work: work,
			batch: &batchState{Batch: Batch{Deadline: noon.Add(due)}}}
	}
	p := &pool{inFlight: 4}
	if got := p.requiredLines(noon, []*job{of("a", 1e6, time.Hour)}); got != 0 {
		t.Errorf("%v lines while the rate is unknown, want 0", got)
	}
	p.rate = rate{work: 400 * 30, seconds: 30, last: noon} // 400 per second, 100 per line
	hour := 0.95 * 3600
	for _, test := range []struct {
		name string
		due  []*job
		want float64
	}{
		{"none", nil, 0},
		{"one", []*job{of("a", 100*hour, time.Hour)}, 1.1},
		{"the first deadline decides", []*job{of("a", 300*hour, time.Hour),
			of("b", 100*hour, 10*time.Hour)},
			3.3},
		{"the sum decides", []*job{of("a", 100*hour, time.Hour), of("b", 500*hour, 2*time.Hour)},
			3.3},
		{"past the deadline", []*job{of("a", 1000, -time.Hour)}, 11},
	} {
		if got := p.requiredLines(noon, test.due); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: %v lines, want %v", test.name, got, test.want)
		}
	}
}
