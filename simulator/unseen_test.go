package simulator

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// On a pool that scales from zero, jobs of long lines meet their deadlines although all answers
// before were short, and the GPU-hours stay near those that are needed.
func TestUnseenLongLinesFromZero(t *testing.T) {
	s := bundled(t, "s11-from-zero.yaml", streamed)
	long := func(median float64) scenario.Length {
		return scenario.Length{Median: median, Sigma: 0.3}
	}
	s.Scenario.Jobs = []scenario.Job{
		{Name: "short", Kind: "score", At: 30 * time.Minute, Window: time.Hour, Lines: 8000},
		{Name: "essays", Kind: "gen", At: 3 * time.Hour, Window: 3 * time.Hour, Lines: 12_000},
		{Name: "shorter", Kind: "score", At: 7 * time.Hour, Window: time.Hour, Lines: 20_000},
		{Name: "reports", Input: long(55), Output: long(3000), At: 10 * time.Hour,
			Window: time.Hour, Lines: 6000},
		{Name: "shortest", Kind: "score", At: 13 * time.Hour, Window: time.Hour, Lines: 8000},
		{Name: "books", Input: long(55), Output: long(4500), At: 20 * time.Hour,
			Window: 2 * time.Hour, Lines: 8000},
	}
	r, err := RunBatch(s, func(float64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range r.Jobs {
		if j.Outcome != Finished || j.Flagged != 0 {
			t.Errorf("%s is %s after %d lines, flagged at %v", j.Name, j.Outcome, j.Done,
				j.Flagged)
		}
	}
	if r.GPUHours > 18 { // the linear program needs 11.8
		t.Errorf("%.1f GPU-hours", r.GPUHours)
	}
}
