package simulator

import (
	"math"
	"testing"
	"time"
)

// A real server (vLLM 0.15.1, Llama-2-70B on four H100), described by its profile, arrival rates
// and lengths alone, is compared with the time per output token that its clients measured. There is
// no batch work.
func TestTheMeasuredServerAsItsClientsSawIt(t *testing.T) {
	const within = 0.08 // of the clients' mean
	for _, run := range []struct {
		rate          float64 // requests a second
		prompt, reply float64 // tokens, medians
		seen          float64 // milliseconds a token
	}{
		{5, 593, 247, 17.1},
		{8, 575, 248, 18.6},
		{10, 593, 247, 19.1},
		{20, 575, 248, 22.1},
	} {
		s := bundled(t, "s14-measured.yaml", func(s *Setup) {
			interactive := &s.Scenario.Interactive
			interactive.Rate, interactive.Surges, s.Scenario.Horizon = run.rate, nil, 20*time.Minute
			interactive.Input.Median, interactive.Output.Median = run.prompt, run.reply
		})
		q, err := RunNoBatch(s, silent)
		if err != nil {
			t.Fatal(err)
		}
		got := q.Interactive.TPOT.P50
		t.Logf("%v requests a second: %.1f ms a token, clients saw %.1f (%+.1f %%)", run.rate, got,
			run.seen, 100*(got/run.seen-1))
		if off := math.Abs(got/run.seen - 1); off > within {
			t.Errorf("at %v requests a second a token takes %.1f ms, clients saw %.1f", run.rate,
				got, run.seen)
		}
	}
}
