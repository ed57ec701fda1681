package policies_test

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/lab/policies/model"
)

// Without objectives a gateway knows of no late request, and every policy still runs.
func TestPoliciesRunWithoutObjectives(t *testing.T) {
	scenarios, err := compare.OpenScenarios([]string{"../../scenarios/s1-steady.yaml"},
		compare.Trace{})
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range names {
		candidate, err := compare.Configuration{}.Candidate(policy)
		if err != nil {
			t.Fatal(err)
		}
		s := scenarios[0].Setup
		s.Seed, s.Policy = 1, candidate.Policy
		s.Scenario.Horizon, s.Scenario.Interactive.SLOWithheld = 4*time.Minute, true
		r, err := simulator.Run(s, func(float64) error { return nil })
		if err != nil || r.Batch.Useful == 0 {
			t.Errorf("%s harvests %d tokens, %v", policy, r.Batch.Useful, err)
		}
		if policy == model.Name && r.Loss > simulator.MaxLoss {
			t.Errorf("%s loses %.2f points", policy, r.Loss)
		}
	}
}
