package simulator

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
	fixedpolicy "github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// What the configuration leaves open is filled in from the scenario, and what it
// says is kept.
func TestPolicyIsToldWhatItsConfigurationLeavesOpen(t *testing.T) {
	s := bundled(t, "s1-steady.yaml")
	in := &s.Scenario.Interactive
	in.SLO.TTFT, in.SLO.TPOT = time.Second, 80*time.Millisecond
	in.Classes = []scenario.Class{{Name: "agents", Generator: "conversation", SLO: scenario.SLO{
		TTFT: 5 * time.Second, TPOT: 60 * time.Millisecond}}}
	s.Scenario.Pool.CostModelError = scenario.CostModelError{C0: 0.5, Prefill: 2}
	cfg, law := s.told(), s.Profile.CostModel
	if cfg.SLO.TTFT != time.Second || cfg.SLO.TPOT != 60*time.Millisecond ||
		cfg.SLO.Late != flowcontrol.DefaultConfig().SLO.Late {
		t.Errorf("told the SLO %+v, want the strictest of each", cfg.SLO)
	}
	want := costmodel.Model{C0: law.C0 / 2, C1: 2 * law.C1, C2: 2 * law.C2, N0: law.N0,
		KV: law.KV, P1: 2 * law.P1, P2: 2 * law.P2}
	if cfg.Engine.CostModel != want {
		t.Errorf("told the law %+v, want %+v", cfg.Engine.CostModel, want)
	}
	if e := cfg.Engine; e.KVTokens != s.Profile.KVTokens || e.MaxSeqs != s.Profile.MaxSeqs ||
		e.MaxBatchedTokens != s.Profile.MaxBatchedTokens {
		t.Errorf("told the limits %+v", e)
	}
	if got := s.promises(); len(got) != 2 || got[0].TPOT != 80*time.Millisecond ||
		got[1].TPOT != 60*time.Millisecond {
		t.Errorf("late is counted against %+v", got)
	}

	own := &s.Policy.Flow
	own.SLO.TPOT, own.Engine = 50*time.Millisecond, flowcontrol.Engine{CostModel: costmodel.Model{C0: 1},
		KVTokens: 2, MaxSeqs: 3, MaxBatchedTokens: 4}
	if got := s.told(); got.SLO.TPOT != 50*time.Millisecond || got.Engine != own.Engine {
		t.Errorf("told %+v instead of what the configuration says", got)
	}
	if got := s.promises(); got[0].TPOT != 50*time.Millisecond || got[0].TTFT != time.Second ||
		got[1].TPOT != 60*time.Millisecond {
		t.Errorf("late is counted against %+v", got)
	}
}

// An operator says of a pool that no users come to that none do, and what its engines are; what the
// configuration says of the pool itself is kept.
func TestPoolsWithoutUsersAreToldSo(t *testing.T) {
	s := bundled(t, "s10-two-pools.yaml")
	told := s.told()
	spot, first := told.For([]string{"model", "spot"}), told.For([]string{"chat", "model"})
	if spot.Shared || !first.Shared {
		t.Errorf("shared: the spot pool %v, the first %v", spot.Shared, first.Shared)
	}
	if spot.Engine.MaxBatchedTokens != 2048 || first.Engine.MaxBatchedTokens == 2048 ||
		spot.Engine.CostModel != first.Engine.CostModel {
		t.Errorf("told the engines %+v and %+v", spot.Engine, first.Engine)
	}
	own := s.Policy.Flow.With(fixedpolicy.Name, fixedpolicy.Config{PerRunner: 3})
	s.Policy.Flow.Pools = map[string]flowcontrol.Config{"spot": own}
	if got := s.told().For([]string{"model", "spot"}); !got.Shared ||
		got.Settings[fixedpolicy.Name] != own.Settings[fixedpolicy.Name] {
		t.Errorf("told %+v instead of what the configuration says", got)
	}
	if alone := bundled(t, "s11-from-zero.yaml"); alone.told().For([]string{"model"}).Shared {
		t.Error("a pool without users is told that there may be some")
	}
}
