package live

import (
	"errors"
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

func TestOutcomeCountsLateRequests(t *testing.T) {
	r := &recorder{objective: scenario.SLO{TTFT: time.Second, TPOT: 100 * time.Millisecond}}
	for _, a := range []answered{
		{Arrival: at(5 * time.Second), ttft: time.Minute}, // in the first edge
		{Arrival: at(20 * time.Second), ttft: time.Second / 2, tpot: 90 * time.Millisecond},
		{Arrival: at(21 * time.Second), ttft: 2 * time.Second},
		{Arrival: at(22 * time.Second), ttft: time.Second, tpot: 101 * time.Millisecond},
		{Arrival: at(23 * time.Second), err: errors.New("reset")},
	} {
		r.request(a)
	}
	o := r.outcome(time.Minute, 10*time.Second)
	if o.Requests != 4 || o.Attainment != 0.25 || o.Failed != 1 {
		t.Errorf("%+v", o)
	}
	if late := o.Timeline[2].Late; late != 3 {
		t.Errorf("%d late requests from the 20th second on, want 3", late)
	}
}

// The counters of a daemon that was started again begin at 0.
func TestOutcomeAddsTheWorkOfRestartedDaemons(t *testing.T) {
	r := &recorder{}
	for i, tokens := range []float64{100, 300, 50, 80} {
		r.state(state{at: time.Duration(i) * time.Second, tokens: tokens, inFlight: 2})
	}
	if o := r.outcome(10*time.Second, 0); o.Tokens != 380 || o.MeanInFlight != 2 {
		t.Errorf("%+v", o)
	}
}

func at(t time.Duration) workload.Arrival { return workload.Arrival{At: t} }
