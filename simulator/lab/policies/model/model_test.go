package model_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
	_ "github.com/tidefill/tidefill/flowcontrol/builtin"
	"github.com/tidefill/tidefill/flowcontrol/flowcontroltest"
	"github.com/tidefill/tidefill/simulator/lab/policies/model"
)

// metrics sets a reading to an engine with an interactive load.
func metrics(running, kv, prompts float64) func(*flowcontrol.Reading) {
	return func(r *flowcontrol.Reading) {
		r.Running, r.Waiting, r.KVUsed, r.KVTokens, r.PromptTokens, r.CachedTokens,
			r.OutputTokens = running, 0, kv, 440_000, prompts, 0, prompts
	}
}

func a100() flowcontrol.Engine {
	return flowcontrol.Engine{
		CostModel: costmodel.Model{C0: 33, C1: 0.112, C2: 0.0714, N0: 112, KV: 5.25e-5, P1: 0.0052,
			P2: 5.14e-6},
		KVTokens: 440_000, MaxSeqs: 256, MaxBatchedTokens: 512,
	}
}

func TestGrantsWhatTheCostModelLeaves(t *testing.T) {
	cfg := flowcontrol.DefaultConfig()
	cfg.SLO.TTFT, cfg.SLO.TPOT = 2*time.Second, 100*time.Millisecond
	cfg.Policy, cfg.Engine = model.Name, a100()
	p := flowcontroltest.NewPool(t, cfg)
	p.Join("a")
	if got := p.Of("a"); got.Lines != 2 || got.Reason != flowcontrol.ReasonGrowing {
		t.Errorf("before any metric: %+v, want 2, learning", got)
	}
	p.Now = p.Now.Add(30 * 24 * time.Hour) // less is kept for bursts in a pool that is known
	prompts := 0.0
	settle := func(running, kv, rate float64) int {
		for range 60 {
			p.Now = p.Now.Add(time.Second)
			prompts += rate
			p.Read("a", metrics(running, kv, prompts))
		}
		return p.Of("a").Lines
	}
	idle := settle(0, 0, 0)
	chatting := settle(10, 0.03, 300)
	busy := settle(40, 0.1, 2000)
	if !(idle > chatting && chatting > busy && busy >= 0) || idle < 50 {
		t.Errorf("%d lines beside nobody, %d beside a few, %d beside many: want fewer and fewer",
			idle, chatting, busy)
	}
	p.Now = p.Now.Add(10 * time.Minute)
	if got := p.Of("a"); got.Lines > 2 {
		t.Errorf("long after the last metric: %+v, want no more than at first", got)
	}
}

// A cost model may have no cost per line, and an objective that the load alone takes up exactly.
func TestLinesThatCostNothing(t *testing.T) {
	for tpot, least := range map[time.Duration]int{
		100 * time.Millisecond: 1, 31250 * time.Microsecond: 0, 10 * time.Millisecond: 0,
	} {
		cfg := flowcontrol.DefaultConfig()
		cfg.SLO.TTFT, cfg.SLO.TPOT = 2*time.Second, tpot
		cfg.Policy, cfg.Engine = model.Name, a100()
		cfg.Engine.CostModel = costmodel.Model{C0: 25}
		p := flowcontroltest.NewPool(t, cfg)
		p.Join("a")
		p.Now = p.Now.Add(30 * 24 * time.Hour)
		for i := range 60 {
			p.Now = p.Now.Add(time.Second)
			p.Read("a", metrics(0, 0, float64(i)))
		}
		if got := p.Of("a"); got.Lines < least || got.Lines > 256 {
			t.Errorf("objective %v: %+v, want at least %d lines", tpot, got, least)
		}
	}
}

func TestNeedsACostModel(t *testing.T) {
	cfg := flowcontrol.DefaultConfig()
	cfg.Policy = model.Name
	if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(),
		"engine.cost_model: is unknown") {
		t.Errorf("got %v, want a fault about the cost model", err)
	}
}

func TestConfigFaultsNameTheirField(t *testing.T) {
	flowcontroltest.TestFaults(t, model.DefaultConfig(),
		map[string]func(*model.Config){
			"target_share: ":  func(c *model.Config) { c.TargetShare = 0 },
			"prompt_tokens: ": func(c *model.Config) { c.PromptTokens = 0 },
		})
}
