package flowcontrol

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestReadingAgainstObjectives(t *testing.T) {
	unknown := Attainment{math.NaN(), math.NaN()}
	both := SLO{TTFT: 2 * time.Second, TPOT: 100 * time.Millisecond}
	for name, test := range map[string]struct {
		of         func(*Reading)
		slo        SLO
		ttft, tpot Attainment
	}{
		"both":       {nil, both, Attainment{10, 3}, Attainment{5, 1}},
		"one":        {nil, SLO{TTFT: time.Second}, Attainment{10, 6}, unknown},
		"relative":   {nil, SLO{Slowdown: 1.15}, unknown, unknown},
		"of engines": {func(r *Reading) { r.Source = Metrics }, both, unknown, unknown},
		"counted itself": {func(r *Reading) { r.TTFT = Attainment{99, 1} }, both,
			Attainment{99, 1}, Attainment{5, 1}},
		"no histogram": {func(r *Reading) { r.TokenTimes = nil }, both, Attainment{10, 3},
			unknown},
	} {
		r := NoReading(Gateway, time.Unix(1, 0))
		r.FirstTokenTimes = []Bucket{{1, 4}, {2, 7}, {math.Inf(1), 10}}
		r.TokenTimes = []Bucket{{0.1, 4}, {math.Inf(1), 5}}
		if test.of != nil {
			test.of(&r)
		}
		before := r
		got := r.Against(test.slo)
		want := [2]Attainment{test.ttft, test.tpot}
		counts := [2]Attainment{got.TTFT, got.TPOT}
		if diff := cmp.Diff(want, counts, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%s: counts are (-want +got)\n%s", name, diff)
		}
		if diff := cmp.Diff(before, r, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%s: the reading itself changed (-before +after)\n%s", name, diff)
		}
	}
}
