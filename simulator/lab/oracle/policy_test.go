package oracle

import (
	"testing"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/scheduler"
	"github.com/tidefill/tidefill/simulator"
)

// policyRun simulates the scenario with a policy.
func policyRun(
	t *testing.T, s simulator.Setup, noBatch simulator.NoBatch, change func(*simulator.Policy),
) simulator.Result {
	t.Helper()
	s.Policy = defaultPolicy()
	change(&s.Policy)
	r, err := simulator.RunAgainst(noBatch, s, func(float64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func defaultPolicy() simulator.Policy {
	return simulator.Policy{Scheduler: scheduler.DefaultConfig(), Flow: flowcontrol.DefaultConfig(),
		Plan: plan.DefaultConfig(), ChunkLines: 100}
}

// watched returns the run and its policy.
func watched(
	t *testing.T, s simulator.Setup, noBatch simulator.NoBatch, change func(*simulator.Policy),
) PriorRun {
	t.Helper()
	policy := defaultPolicy()
	change(&policy)
	return PriorRun{Policy: policy, Result: policyRun(t, s, noBatch, change)}
}
