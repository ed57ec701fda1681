package simulator

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// A job that no policy could finish in time is reported within a minute, though its first answers
// take longer. It takes nothing from a feasible job that is submitted and due later.
func TestInfeasibleJobsAreReportedSoonAndYield(t *testing.T) {
	s := bundled(t, "s9-deadlines.yaml", streamed)
	s.Scenario.Horizon = 100 * time.Minute
	s.Scenario.Jobs = []scenario.Job{
		{Name: "impossible", Kind: "gen", At: 30 * time.Minute, Window: time.Hour, Lines: 50_000},
		{Name: "feasible", Kind: "bal", At: 35 * time.Minute, Window: time.Hour, Lines: 12_000},
	}
	r, err := RunBatch(s, func(float64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	impossible, feasible := r.Jobs[0], r.Jobs[1]
	if after := impossible.Flagged - impossible.Submitted; impossible.Flagged == 0 || after > 60 {
		t.Errorf("reported after %v seconds, want within 60", after)
	}
	if feasible.Flagged != 0 || feasible.Outcome != Finished {
		t.Errorf("the feasible job is %s, flagged at %v", feasible.Outcome, feasible.Flagged)
	}
}
