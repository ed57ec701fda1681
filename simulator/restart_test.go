package simulator

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// restarted lets the daemon be killed at a time and start again five seconds later.
func restarted(at time.Duration, forget bool) func(*Setup) {
	return func(s *Setup) {
		s.Scenario.Faults = append(s.Scenario.Faults, scenario.Fault{At: at,
			Kind: scenario.Restart, For: 5 * time.Second, Forget: forget})
		s.Policy.Flow.Policy = "headroom"
	}
}

// After a restart lines return to their number with what was learned, and never exceed it. Without
// it the pool is watched at that time.
func TestRestart(t *testing.T) {
	const at = 12 * time.Minute
	for _, forget := range []bool{false, true} {
		s := bundled(t, "s1-steady.yaml", horizon(14*time.Minute), restarted(at, forget))
		sim, err := newSimulation(s, true)
		if err != nil {
			t.Fatal(err)
		}
		inFlight := func() (sum int) {
			for _, j := range sim.dispatcher.jobs {
				sum += j.inFlight
			}
			return sum
		}
		most, sum := 0, 0
		sim.run(epoch.Add(at - time.Minute))
		for range 59 {
			sim.run(sim.now.Add(time.Second))
			most, sum = max(most, inFlight()), sum+inFlight()
		}
		if sim.run(epoch.Add(at)); inFlight() > 0 {
			t.Errorf("%d lines in flight when killed", inFlight())
		}
		for range 25 {
			sim.run(sim.now.Add(time.Second))
			if n := inFlight(); n > most {
				t.Fatalf("%d lines in flight at %v, %d before", n, sim.now.Sub(epoch), most)
			}
		}
		if n := inFlight(); forget && n > 0 || !forget && n < sum/59/2 {
			t.Errorf("forget %v: %d lines in flight after 25 s, %d before", forget, n, sum/59)
		}
	}
}

// Batches survive a restart: every line is answered once, and those that are done stay so.
func TestRestartLosesNoLine(t *testing.T) {
	s := bundled(t, "s1-steady.yaml", horizon(20*time.Minute), restarted(40*time.Second, false),
		restarted(90*time.Second, true), func(s *Setup) {
			s.Scenario.Jobs[0].Lines, s.Policy.ChunkLines = 300, 16
		})
	r := result(t, s)
	if j := r.Jobs[0]; j.Outcome != Finished || j.Done != 300 || j.Finished < 90 {
		t.Errorf("got %+v, want 300 lines done after the restarts", j)
	}
}
