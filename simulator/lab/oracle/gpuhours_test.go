package oracle

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/simulator/scenario"
)

func TestGPUHours(t *testing.T) {
	s := smallPool(t, "bal", func(s *scenario.Scenario) {
		s.Horizon = 2 * time.Hour
		s.Pool.Max = 6
		s.Jobs = []scenario.Job{
			{Name: "free", Kind: "bal", Window: 2 * time.Hour, Lines: 5000},
			{Name: "bought", Kind: "bal", At: 30 * time.Minute, Window: time.Hour, Lines: 40_000},
			{Name: "impossible", Kind: "gen", At: time.Hour, Window: 30 * time.Minute,
				Lines: 50_000},
			{Name: "later", Kind: "bal", At: time.Hour, Window: 20 * time.Hour, Lines: 50_000},
			{Name: "never", Kind: "bal"},
		}
	})
	s.Policy.Flow = flowcontrol.DefaultConfig()
	noBatch := runNoBatch(t, s)
	if got, want := len(noBatch.Paid), 12; got != want {
		t.Fatalf("%d slots are paid for, want %d", got, want)
	}
	sum := 0.0
	for _, n := range noBatch.Paid {
		sum += n / 6
	}
	if math.Abs(sum-noBatch.GPUHours) > 1e-6 {
		t.Errorf("%v replica-hours by slot, %v in all", sum, noBatch.GPUHours)
	}
	b, err := GPUHours(s, noBatch)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(b.Infeasible, []string{"impossible"}) {
		t.Errorf("infeasible are %q", b.Infeasible)
	}
	if b.BatchGPUHours < 0.5 || b.BatchGPUHours > 5 ||
		math.Abs(b.GPUHours-noBatch.GPUHours-b.BatchGPUHours) > 1e-6 {
		t.Errorf("%+v beside %v without batch work", b, noBatch.GPUHours)
	}
	s.Scenario.BatchPools = []scenario.BatchPool{{Name: "beside", Scaling: scenario.Scaling{Max: 4},
		MaxBatchedTokens: 2048}}
	if beside, err := GPUHours(s, noBatch); err != nil || beside.BatchGPUHours > b.BatchGPUHours {
		t.Errorf("with another pool %+v (%v), without %+v", beside, err, b)
	}
	s.Scenario.BatchPools, s.Scenario.Pool.Max = nil, 0
	if fixed, err := GPUHours(s, noBatch); err != nil || fixed.GPUHours != 0 ||
		len(fixed.Infeasible) == 0 {
		t.Errorf(
			"fixed pool: %+v (%v), want infeasible deadlines and no hours", fixed, err)
	}
}
