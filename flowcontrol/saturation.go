package flowcontrol

import (
	"math"
	"time"
)

// saturation is a threshold on the load of the pool, as llm-d's router sheds and llm-d-async's gate
// prometheus-saturation closes by it: a runner's load is the larger of its waiting requests over
// QueueDepth and its KV use over KVUsed, and the pool's is their mean. Below Threshold any number
// of lines may start, from there on none.
type saturation struct {
	cfg SaturationConfig
	gate
}

// SaturationConfig is that of a threshold on the pool's load, with the names and defaults of llm-d.
type SaturationConfig struct {
	// Threshold is the load from which nothing starts, above 0 and at most 1. Default: 0.8, as in
	// llm-d-async; 0.5 is the cautious setting.
	Threshold float64 `yaml:"threshold"`
	// QueueDepth is the number of waiting requests at which a runner counts as full, above 0.
	// Default: 5.
	QueueDepth float64 `yaml:"queue_depth"`
	// KVUsed is the share of the KV cache in use at which it does, above 0 and at most 1. Default:
	// 0.8.
	KVUsed float64 `yaml:"kv_used"`
	// Fallback is the load while none is known, 0 or more. Default: 0, which starts as much as can
	// be: so do the gates of llm-d-async.
	Fallback float64 `yaml:"fallback"`
	// PerRunner is how many lines a runner carries at most, at least 1. Default: 256, what vLLM
	// runs at once by default; more would wait there.
	PerRunner int `yaml:"per_runner"`
	// PerPool is how many the pool carries at most; 0: no limit. Default: 64, the workers of
	// llm-d-async.
	PerPool int `yaml:"per_pool"`
	// Stale is the age from which a reading is no longer used. Default: 5m, how far back Prometheus
	// looks.
	Stale time.Duration `yaml:"stale"`
}

func defaultSaturation() SaturationConfig {
	return SaturationConfig{Threshold: 0.8, QueueDepth: 5, KVUsed: 0.8, PerRunner: 256,
		PerPool: asyncWorkers, Stale: promLookback}
}

func (c SaturationConfig) validate(all *faults) {
	if !(c.Threshold > 0 && c.Threshold <= 1) {
		all.add("saturation.threshold", "is %v, must be above 0 and at most 1", c.Threshold)
	}
	if !(c.QueueDepth > 0 && !math.IsInf(c.QueueDepth, 1)) {
		all.add("saturation.queue_depth", "is %v, must be above 0", c.QueueDepth)
	}
	if !(c.KVUsed > 0 && c.KVUsed <= 1) {
		all.add("saturation.kv_used", "is %v, must be above 0 and at most 1", c.KVUsed)
	}
	if !(c.Fallback >= 0 && !math.IsInf(c.Fallback, 1)) {
		all.add("saturation.fallback", "is %v, must not be negative", c.Fallback)
	}
	all.atLeast("saturation.per_runner", c.PerRunner, 1)
	all.atLeast("saturation.per_pool", c.PerPool, 0)
	if c.Stale <= 0 {
		all.add("saturation.stale", "is %v, must be positive", c.Stale)
	}
}

func newSaturation(cfg SaturationConfig) *saturation {
	return &saturation{cfg: cfg, gate: newGate(cfg.Stale)}
}

func (*saturation) Name() string { return "saturation" }

func (s *saturation) Observe(now time.Time, o Observation) (changed bool) {
	return s.observe(now, o, s.level)
}

// level is NaN only if a reading shows neither.
func (s *saturation) level(r *Reading) float64 {
	queue, kv := r.Waiting/s.cfg.QueueDepth, r.KVUsed/s.cfg.KVUsed
	switch {
	case math.IsNaN(queue):
		return kv
	case math.IsNaN(kv):
		return queue
	}
	return max(queue, kv)
}

func (s *saturation) Allowance(now time.Time) Allowance {
	load, seen, until := s.mean(now)
	if !seen {
		load = s.cfg.Fallback
	}
	switch {
	case load < s.cfg.Threshold && !s.refused:
		return s.grant(now, s.cfg.PerRunner, s.cfg.PerPool, ReasonRunnerLimit, until)
	case seen:
		return s.grant(now, 0, 0, ReasonLoad, until)
	default:
		return s.grant(now, 0, 0, ReasonNoMetrics, until)
	}
}
