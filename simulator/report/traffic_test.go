package report

import (
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/workload"
)

func TestTrafficDescribesItsSource(t *testing.T) {
	dispersion := func(values ...float64) (all []workload.Dispersion) {
		for _, v := range values {
			all = append(all, workload.Dispersion{VarMean: v, AroundRate: v / 2})
		}
		return all
	}
	h := simulator.TrafficSummary{
		Rate: 4, Copies: 3, Notes: workload.ResampleNotes,
		Result: workload.Statistics{Requests: 345, Span: time.Minute, Rate: 4.1,
			Dispersion: dispersion(1.2, 2, 6)},
		Source: &workload.Statistics{Dispersion: dispersion(1.4, 4, 16)},
	}
	got := strings.Join(TrafficOf(h).sentences(), "\n")
	for _, want := range []string{
		"345 requests, 4.10 a second (requested: 4.00), 3 overlaid copies of the trace",
		"at 1, 10, 60 s: 1.4, 4.0, 16.0 in the trace, 1.2, 2.0, 6.0 simulated, 0.6, 1.0, 3.0 of " +
			"it around the requested rate",
		"Note: " + workload.ResampleNotes[0],
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	h.Copies = 0
	if got := TrafficOf(h).sentences()[0]; !strings.Contains(got, "played back once") {
		t.Error(got)
	}
	h.Source = nil
	if lines := TrafficOf(h).sentences(); lines != nil {
		t.Errorf("a generator's traffic is like nothing but itself: %q", lines)
	}
}
