package saturation

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/internal/faults"
	"github.com/tidefill/tidefill/simulator/lab/policies/internal/gate"
)

// Config is the configuration of the policy saturation, with llm-d's names and defaults.
type Config struct {
	// Threshold is the load from which nothing starts, above 0 and at most 1. Default: 0.8, as in
	// llm-d-async; 0.5 is the cautious setting.
	Threshold float64 `yaml:"threshold"`
	// QueueDepth is the number of waiting requests at which a runner counts as full, above 0.
	// Default: 5.
	QueueDepth float64 `yaml:"queue_depth"`
	// KVUsed is the share of the KV cache in use at which a runner counts as full, above 0 and at
	// most 1. Default: 0.8.
	KVUsed float64 `yaml:"kv_used"`
	// Fallback is the load while none is known, 0 or more. Default: 0, which starts as many lines
	// as the limits allow, as llm-d-async does.
	Fallback float64 `yaml:"fallback"`
	// PerRunner limits how many lines a runner carries, at least 1. Default: 256, what vLLM
	// runs at once by default; more would only wait there.
	PerRunner int `yaml:"per_runner"`
	// PerPool limits how many lines the pool carries. 0: no limit. Default: 64, the workers of
	// llm-d-async.
	PerPool int `yaml:"per_pool"`
	// MaxAge is the age from which a reading is no longer used. Default: 5m, how far back a query
	// of Prometheus searches for a sample.
	MaxAge time.Duration `yaml:"max_age"`
}

// DefaultConfig returns the defaults of llm-d.
func DefaultConfig() Config {
	return Config{Threshold: 0.8, QueueDepth: 5, KVUsed: 0.8, PerRunner: 256,
		PerPool: gate.AsyncWorkers, MaxAge: gate.PromLookback}
}

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var all faults.List
	if !(c.Threshold > 0 && c.Threshold <= 1) {
		all.Add("threshold", "is %v, must be above 0 and at most 1", c.Threshold)
	}
	if !(c.QueueDepth > 0 && !math.IsInf(c.QueueDepth, 1)) {
		all.Add("queue_depth", "is %v, must be above 0", c.QueueDepth)
	}
	if !(c.KVUsed > 0 && c.KVUsed <= 1) {
		all.Add("kv_used", "is %v, must be above 0 and at most 1", c.KVUsed)
	}
	if !(c.Fallback >= 0 && !math.IsInf(c.Fallback, 1)) {
		all.Add("fallback", "is %v, must not be negative", c.Fallback)
	}
	all.AtLeast("per_runner", c.PerRunner, 1)
	all.AtLeast("per_pool", c.PerPool, 0)
	all.Positive("max_age", c.MaxAge)
	return all.Err()
}
