package simulator

import (
	"testing"
	"time"
)

// What S29 must show: without an objective, iterations of users take at most slo.slowdown times as
// long, so less fits than with the objective that they are judged by.
func TestWithoutAnObjectiveUsersAreSlowedDownLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it judges a policy by hours of simulation")
	}
	withheld := bundled(t, "s29-no-objective.yaml", horizon(15*time.Minute))
	slowdown := withheld.Policy.Flow.SLO.Slowdown
	without := result(t, withheld)
	known := withheld
	known.Scenario.Interactive.SLOWithheld = false
	with := result(t, known)
	took := without.Interactive.TPOT.P50 / without.NoBatch.TPOT.P50
	t.Logf("%.3f times the time per token for %.3g tokens, with the objective %.3g tokens", took,
		float64(without.Batch.Useful), float64(with.Batch.Useful))
	if took > slowdown || took < 1+(slowdown-1)/4 {
		t.Errorf("users take %.3f times as long for a token, want up to %.2f and batch work", took,
			slowdown)
	}
	if without.Loss > 1 || without.Batch.Useful == 0 ||
		with.Batch.Useful < without.Batch.Useful*5/4 {
		t.Errorf("%d tokens at a loss of %.2f points, with the objective %d tokens",
			without.Batch.Useful, without.Loss, with.Batch.Useful)
	}
}
