package simulator

import (
	"cmp"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// flowConfig returns the policy's flow-control configuration. What it leaves at its defaults is
// filled in for each pool, as by an operator who knows the pool: the SLO, the engine, and whether
// interactive users come. A pool with an entry of its own keeps what the entry says of users.
func (s Setup) flowConfig() flowcontrol.Config {
	given := s.Policy.Flow
	first := s.firstPool()
	cfg := s.withPoolFacts(given.For(first, models()), s.Engine().Profile)
	if _, own := given.Own(first, models()); !own &&
		!s.Scenario.Interactive.Comes() {
		cfg.Shared = false
	}
	for _, b := range s.Scenario.BatchPools {
		flow := s.withPoolFacts(given.For(b.Name, models()), s.BatchEngine(b).Profile)
		if _, own := given.Own(b.Name, models()); !own {
			flow.Shared = false
		}
		if cfg.Pools == nil {
			cfg.Pools = map[string]flowcontrol.Config{}
		}
		cfg.Pools[b.Name] = flow
	}
	return cfg
}

// withPoolFacts returns cfg with what is known of a pool: the strictest SLO of all classes of
// traffic, and the engine's limits and cost model, each if the scenario does not withhold it. The
// cost model is that of the first pool, with the scenario's errors.
func (s Setup) withPoolFacts(cfg flowcontrol.Config, limits engine.Profile) flowcontrol.Config {
	defaults, slo := flowcontrol.DefaultConfig().SLO, s.Scenario.Interactive.StrictestSLO()
	if s.Scenario.Interactive.SLOWithheld {
		slo.TTFT, slo.TPOT = 0, 0
	}
	if cfg.SLO.TTFT == defaults.TTFT {
		cfg.SLO.TTFT = slo.TTFT
	}
	if cfg.SLO.TPOT == defaults.TPOT {
		cfg.SLO.TPOT = slo.TPOT
	}
	if s.Scenario.Pool.FactsWithheld {
		return cfg
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

// objectives returns the SLOs that the daemon counts late requests against, by class of traffic:
// the scenario's, none if it withholds them; for the first class, those that the policy's
// configuration sets.
func (s Setup) objectives() []scenario.SLO {
	cfg, defaults := s.Policy.Flow.SLO, flowcontrol.DefaultConfig().SLO
	var all []scenario.SLO
	for _, c := range s.Scenario.Interactive.All() {
		if s.Scenario.Interactive.SLOWithheld {
			c.SLO.TTFT, c.SLO.TPOT = 0, 0
		}
		all = append(all, c.SLO)
	}
	if cfg.TTFT != defaults.TTFT {
		all[0].TTFT = cfg.TTFT
	}
	if cfg.TPOT != defaults.TPOT {
		all[0].TPOT = cfg.TPOT
	}
	return all
}
