package simulator

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol/headroom"
)

// fullCaches is a pool whose KV caches are half full of interactive requests, with lines of long
// answers, which grow for minutes after they start.
func fullCaches(t *testing.T, seed uint64) Result {
	return result(t, bundled(t, "s2-gen.yaml", horizon(30*time.Minute), func(s *Setup) {
		s.Scenario.Pool.Replicas, s.Scenario.Pool.KVTokens = 8, 30_000
		s.Policy.Flow.Policy = "headroom"
		s.Seed = seed
	}))
}

// The reserve of KV cache follows what lines will hold, not what the first lines to end held.
func TestHeadroomReservesKVForLinesToGrow(t *testing.T) {
	for seed := range uint64(3) {
		r := fullCaches(t, seed+1)
		wasted := float64(r.Batch.Wasted) / float64(r.Batch.Wasted+r.Batch.Useful)
		t.Logf("%.2f points, %.1f %% wasted, %d preemptions, %.2f Mtok", r.Loss, 100*wasted,
			r.Batch.Preemptions, float64(r.Batch.Useful)/1e6)
		if r.Loss > 1 || wasted > 0.02 || r.Batch.Useful == 0 {
			t.Errorf("seed %d: the loss is %.2f points, %.1f %% are wasted, %d tokens are of use",
				seed+1, r.Loss, 100*wasted, r.Batch.Useful)
		}
	}
}

// A line may be evicted during the iteration at whose start it was preempted. Without a reserve,
// engines preempt.
func TestEvictionOfPreempted(t *testing.T) {
	s := bundled(t, "s2-gen.yaml", horizon(time.Hour), func(s *Setup) {
		s.Scenario.Pool.Replicas, s.Scenario.Pool.KVTokens = 8, 30_000
		own := headroom.DefaultConfig()
		own.Streams = headroom.StreamsAll
		reserve := &own.Tuning.Reserve
		reserve.KVUsed, reserve.KVDeviations = 1, 0
		s.Policy.Flow = s.Policy.Flow.Select(headroom.Name, own)
		s.Seed = 2
	})
	if r := result(t, s); r.Batch.Preemptions == 0 || r.Batch.Evictions == 0 {
		t.Fatalf("%d preemptions, %d evictions, want both above 0", r.Batch.Preemptions,
			r.Batch.Evictions)
	}
}
