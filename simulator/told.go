package simulator

import (
	"cmp"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// told is the policy's configuration of flow control with what it leaves open filled
// in for each pool, as an operator would who knows it.
func (s Setup) told() flowcontrol.Config {
	given := s.Policy.Flow
	first := s.firstModels()
	cfg := s.toldOf(given.For(first), s.Engine().Profile)
	if _, own := given.Own(first); !own && s.Scenario.Interactive.Generator == scenario.None {
		cfg.Shared = false
	}
	for _, b := range s.Scenario.BatchPools {
		models := batchModels(b)
		flow := s.toldOf(given.For(models), s.BatchEngine(b).Profile)
		if _, own := given.Own(models); !own {
			flow.Shared = false
		}
		if cfg.Pools == nil {
			cfg.Pools = map[string]flowcontrol.Config{}
		}
		cfg.Pools[b.Name] = flow
	}
	return cfg
}

// toldOf fills in what is known of a pool: the strictest of what users are promised,
// and the engine's law and limits. The law is the first pool's, and may be told
// wrong, which is the scenario's doing.
func (s Setup) toldOf(cfg flowcontrol.Config, limits engine.Profile) flowcontrol.Config {
	open, slo := flowcontrol.DefaultConfig().SLO, s.Scenario.Interactive.SLO
	for _, c := range s.Scenario.Interactive.All() {
		slo.TTFT, slo.TPOT = min(slo.TTFT, c.SLO.TTFT), min(slo.TPOT, c.SLO.TPOT)
	}
	if cfg.SLO.TTFT == open.TTFT {
		cfg.SLO.TTFT = slo.TTFT
	}
	if cfg.SLO.TPOT == open.TPOT {
		cfg.SLO.TPOT = slo.TPOT
	}
	cfg.Engine.KVTokens = cmp.Or(cfg.Engine.KVTokens, limits.KVTokens)
	cfg.Engine.MaxSeqs = cmp.Or(cfg.Engine.MaxSeqs, limits.MaxSeqs)
	cfg.Engine.MaxBatchedTokens = cmp.Or(cfg.Engine.MaxBatchedTokens, limits.MaxBatchedTokens)
	if !cfg.Engine.CostModel.Known() {
		m, off := s.Engine().Profile.CostModel, s.Scenario.Pool.CostModelError
		c0, kv, prefill := cmp.Or(off.C0, 1), cmp.Or(off.KV, 1), cmp.Or(off.Prefill, 1)
		m.C0 *= c0
		m.KV *= kv
		m.C1, m.C2, m.P1, m.P2 = prefill*m.C1, prefill*m.C2, prefill*m.P1, prefill*m.P2
		cfg.Engine.CostModel = m
	}
	return cfg
}

// promises are what the daemon counts late against, by class of traffic: what users
// are promised or, for the first class, what the policy's configuration says.
func (s Setup) promises() []scenario.SLO {
	cfg, open := s.Policy.Flow.SLO, flowcontrol.DefaultConfig().SLO
	var all []scenario.SLO
	for _, c := range s.Scenario.Interactive.All() {
		all = append(all, c.SLO)
	}
	if cfg.TTFT != open.TTFT {
		all[0].TTFT = cfg.TTFT
	}
	if cfg.TPOT != open.TPOT {
		all[0].TPOT = cfg.TPOT
	}
	return all
}
