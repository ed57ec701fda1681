package simulator

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// restarts lets the daemon be killed every few hours, and once stay away for minutes.
func restarts(s *Setup) {
	s.Policy.Flow.Policy = "headroom"
	for at := 100 * time.Minute; at < s.Scenario.Horizon; at += 5 * time.Hour {
		s.Scenario.Faults = append(s.Scenario.Faults, scenario.Fault{At: at,
			Kind: scenario.Restart, For: 20 * time.Second})
	}
	s.Scenario.Faults = append(s.Scenario.Faults, scenario.Fault{At: 9*time.Hour + time.Minute,
		Kind: scenario.Restart, For: 4 * time.Minute})
}

// Restarts of the daemon cost no deadline, and hardly any replica hours.
func TestScalingSurvivesRestarts(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it simulates days")
	}
	plain, err := RunBatch(bundled(t, "s11-from-zero.yaml", streamed), silent)
	if err != nil {
		t.Fatal(err)
	}
	r, err := RunBatch(bundled(t, "s11-from-zero.yaml", streamed, restarts), silent)
	if err != nil {
		t.Fatal(err)
	}
	if r.Batch.Met != r.Batch.Deadlines || r.GPUHours > 1.1*plain.GPUHours {
		t.Errorf("%d of %d deadlines met in %.2f replica hours, %.2f without restarts",
			r.Batch.Met, r.Batch.Deadlines, r.GPUHours, plain.GPUHours)
	}
	t.Logf("%.2f replica hours, %.2f without restarts", r.GPUHours, plain.GPUHours)
}

// The daemon saves what it has learned once a minute. Killed before, it has nothing to recall, and
// decides all the same.
func TestScalingContinuesAfterARestartInTheFirstMinute(t *testing.T) {
	s := bundled(t, "s11-from-zero.yaml", horizon(5*time.Minute), func(s *Setup) {
		s.Scenario.Faults = []scenario.Fault{{At: 30 * time.Second, Kind: scenario.Restart,
			For: 5 * time.Second}}
	})
	sim, _, err := simulate(s, true, silent)
	if err != nil {
		t.Fatal(err)
	}
	if sim.scaling.fleet == nil {
		t.Error("nothing decides how many replicas there are")
	}
}
