package simulator

import (
	"testing"
	"time"
)

// crowded is a pool whose KV caches interactive requests alone fill by half, and
// lines of long answers beside them, which grow for minutes after they start.
func crowded(t *testing.T, seed uint64) Result {
	return result(t, bundled(t, "s2-gen.yaml", horizon(30*time.Minute), func(s *Setup) {
		s.Scenario.Pool.Replicas, s.Scenario.Pool.KVTokens = 8, 30_000
		s.Policy.Flow.Policy = "headroom"
		s.Seed = seed
	}))
}

// Room is kept for what lines will hold, not for what those hold that ended first.
func TestProbeLeavesRoomForLinesToGrow(t *testing.T) {
	for seed := range uint64(3) {
		r := crowded(t, seed+1)
		wasted := float64(r.Batch.Wasted) / float64(r.Batch.Wasted+r.Batch.Useful)
		t.Logf("%.2f points, %.1f %% wasted, %d preemptions, %.2f Mtok", r.Loss, 100*wasted,
			r.Batch.Preemptions, float64(r.Batch.Useful)/1e6)
		if r.Loss > 1 || wasted > 0.02 || r.Batch.Useful == 0 {
			t.Errorf("seed %d: the loss is %.2f points, %.1f %% are wasted, %d tokens are of use",
				seed+1, r.Loss, 100*wasted, r.Batch.Useful)
		}
	}
}

// A line may be recalled while the iteration runs at whose start it lost its place.
func TestRecallOfPreempted(t *testing.T) {
	s := bundled(t, "s2-gen.yaml", horizon(time.Hour), func(s *Setup) {
		s.Scenario.Pool.Replicas, s.Scenario.Pool.KVTokens = 8, 30_000
		s.Policy.Flow.Policy = "headroom"
		s.Seed = 2
	})
	if r := result(t, s); r.Batch.Preemptions == 0 || r.Batch.Evictions == 0 {
		t.Fatalf("%d preemptions, %d recalls: nothing is tried", r.Batch.Preemptions,
			r.Batch.Evictions)
	}
}
