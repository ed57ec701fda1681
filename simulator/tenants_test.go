package simulator

import (
	"math"
	"testing"
)

// What S28 must show: nobody waits behind the large jobs of another tenant or of their own. First
// come, first served would finish none of the small jobs.
func TestTenantsWithSmallLargeAndDueJobs(t *testing.T) {
	r, err := RunBatch(bundled(t, "s28-tenants.yaml"), silent)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]Job{}
	for _, j := range r.Jobs {
		byName[j.Name] = j
		t.Logf("%-13s %5d lines, %s after %.0f s", j.Name, j.Done, j.Outcome,
			j.Finished-j.Submitted)
	}
	for name, limit := range map[string]float64{
		"team-small-1": 180, "team-small-2": 180, "archive-small": 1500,
	} {
		if j := byName[name]; j.Outcome != Finished || j.Finished-j.Submitted > limit {
			t.Errorf("%s is %s after %.0f s, want it finished within %.0f s", name, j.Outcome,
				j.Finished-j.Submitted, limit)
		}
	}
	if j := byName["report"]; j.Outcome != Finished || j.Finished > j.Deadline {
		t.Errorf("the report is %s at %.0f s, due at %.0f s", j.Outcome, j.Finished, j.Deadline)
	}
	archive := float64(byName["archive-1"].Done + byName["archive-2"].Done)
	team := float64(byName["team-large"].Done)
	if math.Abs(archive-team) > 0.1*(archive+team) {
		t.Errorf("the tenants with large jobs got %.0f and %.0f lines, want about the same",
			archive, team)
	}
	if a, b := float64(byName["archive-1"].Done), float64(byName["archive-2"].Done); math.Abs(
		a-b) > 0.3*(a+b) {
		t.Errorf("a tenant's large jobs got %.0f and %.0f lines, want about the same", a, b)
	}
}
