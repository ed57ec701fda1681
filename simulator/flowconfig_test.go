package simulator

import (
	"math"
	"testing"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
	fixedpolicy "github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/flowcontrol/schedule"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// Values that the configuration leaves at their defaults are filled in from the scenario; others
// are kept.
func TestFlowConfigFillsInThePool(t *testing.T) {
	s := bundled(t, "s1-steady.yaml")
	in := &s.Scenario.Interactive
	in.SLO.TTFT, in.SLO.TPOT = time.Second, 80*time.Millisecond
	in.Classes = []scenario.Class{{Name: "agents", Generator: "conversation", SLO: scenario.SLO{
		TTFT: 5 * time.Second, TPOT: 60 * time.Millisecond}}}
	s.Scenario.Pool.CostModelError = scenario.CostModelError{C0: 0.5, Prefill: 2}
	cfg, exact := s.flowConfig(), s.Profile.CostModel
	if cfg.SLO.TTFT != time.Second || cfg.SLO.TPOT != 60*time.Millisecond ||
		cfg.SLO.Late != flowcontrol.DefaultConfig().SLO.Late {
		t.Errorf("the SLO is %+v, want the strictest of each", cfg.SLO)
	}
	want := costmodel.Model{C0: exact.C0 / 2, C1: 2 * exact.C1, C2: 2 * exact.C2, N0: exact.N0,
		KV: exact.KV, P1: 2 * exact.P1, P2: 2 * exact.P2}
	if cfg.Engine.CostModel != want {
		t.Errorf("the cost model is %+v, want %+v", cfg.Engine.CostModel, want)
	}
	if e := cfg.Engine; e.KVTokens != s.Profile.KVTokens || e.MaxSeqs != s.Profile.MaxSeqs ||
		e.MaxBatchedTokens != s.Profile.MaxBatchedTokens {
		t.Errorf("the engine's limits are %+v", e)
	}
	if got := s.objectives(); len(got) != 2 || got[0].TPOT != 80*time.Millisecond ||
		got[1].TPOT != 60*time.Millisecond {
		t.Errorf("late is counted against %+v", got)
	}

	own := &s.Policy.Flow
	own.SLO.TPOT = 50 * time.Millisecond
	own.Engine = flowcontrol.Engine{CostModel: costmodel.Model{C0: 1}, KVTokens: 2, MaxSeqs: 3,
		MaxBatchedTokens: 4}
	if got := s.flowConfig(); got.SLO.TPOT != 50*time.Millisecond || got.Engine != own.Engine {
		t.Errorf("got %+v, want what the configuration sets", got)
	}
	if got := s.objectives(); got[0].TPOT != 50*time.Millisecond || got[0].TTFT != time.Second ||
		got[1].TPOT != 60*time.Millisecond {
		t.Errorf("late is counted against %+v", got)
	}
}

// A scenario can keep what is known of the engine from the policy.
func TestFlowConfigWithholdsFacts(t *testing.T) {
	s := bundled(t, "s1-steady.yaml")
	s.Scenario.Pool.FactsWithheld = true
	if cfg := s.flowConfig(); cfg.Engine != (flowcontrol.Engine{}) || cfg.SLO.Relative() {
		t.Errorf("the engine is %+v, the objectives are %+v, want these alone", cfg.Engine, cfg.SLO)
	}
	s.Policy.Flow.Engine.MaxSeqs = 64
	if got, want := s.flowConfig().Engine, (flowcontrol.Engine{MaxSeqs: 64}); got != want {
		t.Errorf("the engine is %+v, want %+v as configured", got, want)
	}
}

// A scenario can keep the objectives from the policy. What the configuration sets is known.
func TestFlowConfigWithholdsTheObjectives(t *testing.T) {
	s := bundled(t, "s1-steady.yaml")
	s.Scenario.Interactive.SLOWithheld = true
	if cfg := s.flowConfig(); !cfg.SLO.Relative() || cfg.Validate() != nil {
		t.Errorf("the SLO is %+v, want none", cfg.SLO)
	}
	if got := s.objectives(); got[0].TTFT != 0 || got[0].TPOT != 0 {
		t.Errorf("late is counted against %+v", got)
	}
	s.Policy.Flow.SLO.TPOT = 50 * time.Millisecond
	if cfg := s.flowConfig(); cfg.SLO.TPOT != 50*time.Millisecond || cfg.SLO.TTFT != 0 {
		t.Errorf("the SLO is %+v, want a TPOT of 50ms alone", cfg.SLO)
	}
	if got := s.objectives(); got[0].TTFT != 0 || got[0].TPOT != 50*time.Millisecond {
		t.Errorf("late is counted against %+v", got)
	}
}

// Without objectives a gateway knows of no late request, and every policy still runs.
func TestPoliciesRunWithoutObjectives(t *testing.T) {
	for _, kind := range []scenario.Gateway{scenario.GatewayHistogram, scenario.GatewayCounters} {
		g := newGateway(scenario.Metrics{Gateway: kind}, []scenario.SLO{{}})
		g.ttft[0].add(time.Hour, true)
		g.tpot[0].add(time.Hour, true)
		if r := g.reading(epoch); !math.IsNaN(r.TTFT.Late) || !math.IsNaN(r.TPOT.Requests) {
			t.Errorf("%s: reads %+v and %+v, want unknown", kind, r.TTFT, r.TPOT)
		}
	}
	for _, policy := range []string{"aimd", "fixed", "headroom", "schedule"} {
		s := bundled(t, "s1-steady.yaml")
		s.Scenario.Horizon, s.Scenario.Interactive.SLOWithheld = 4*time.Minute, true
		s.Policy.Flow = s.Policy.Flow.With(schedule.Name, schedule.Config{Begin: epoch,
			Rows: []schedule.Row{{Lines: 100, TargetShare: 0.7}}})
		s.Policy.Flow.Policy = policy
		r, err := Run(s, func(float64) error { return nil })
		if err != nil || r.Batch.Useful == 0 {
			t.Errorf("%s harvests %d tokens, %v", policy, r.Batch.Useful, err)
		}
		if policy == "schedule" && r.Loss > MaxLoss {
			t.Errorf("%s loses %.2f points", policy, r.Loss)
		}
	}
}

// A pool without interactive traffic is not shared, unless its own entry sets it.
func TestFlowConfigOfPoolsWithoutUsers(t *testing.T) {
	s := bundled(t, "s10-two-pools.yaml")
	cfg := s.flowConfig()
	spot, first := cfg.For("spot", models()), cfg.For("chat", models())
	if spot.Shared || !first.Shared {
		t.Errorf("shared: the spot pool %v, the first %v", spot.Shared, first.Shared)
	}
	if spot.Engine.MaxBatchedTokens != 2048 || first.Engine.MaxBatchedTokens == 2048 ||
		spot.Engine.CostModel != first.Engine.CostModel {
		t.Errorf("the engines are %+v and %+v", spot.Engine, first.Engine)
	}
	own := s.Policy.Flow.With(fixedpolicy.Name, fixedpolicy.Config{PerRunner: 3})
	s.Policy.Flow.Pools = map[string]flowcontrol.Config{"spot": own}
	if got := s.flowConfig().For("spot", models()); !got.Shared ||
		got.Settings[fixedpolicy.Name] != own.Settings[fixedpolicy.Name] {
		t.Errorf("got %+v, want what the pool's entry sets", got)
	}
	alone := bundled(t, "s11-from-zero.yaml")
	if alone.flowConfig().For("", []string{"model"}).Shared {
		t.Error("a pool without users is shared")
	}
}
