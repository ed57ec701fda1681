package budget

import (
	"time"

	"github.com/tidefill/tidefill/internal/faults"
	"github.com/tidefill/tidefill/simulator/lab/policies/internal/gate"
)

// Config is the configuration of the policy budget, with llm-d-async's names and defaults.
type Config struct {
	// MaxConcurrency is how many requests a runner is assumed to hold, at least 1. Default: 100, as
	// in llm-d's scheduler.
	MaxConcurrency int `yaml:"max_concurrency"`
	// Baseline is the share that stays free, 0 or more and below 1. Default: 0.05.
	Baseline float64 `yaml:"baseline"`
	// Load is what counts as in use: queue, the requests that wait in the engines, or running,
	// those that run there. Default: queue, which every engine exports, and which llm-d-async uses
	// unless the router's own flow control is on.
	Load Load `yaml:"load"`
	// Fallback is the free share while no load is known, 0 to 1. Default: 0, which starts nothing.
	Fallback float64 `yaml:"fallback"`
	// PerPool limits how many lines the pool carries. 0: no limit. Default: 64, the workers of
	// llm-d-async.
	PerPool int `yaml:"per_pool"`
	// MaxAge is the age from which a reading is no longer used. Default: 5m, how far back a query
	// of Prometheus searches for a sample.
	MaxAge time.Duration `yaml:"max_age"`
}

// Load is what the policy counts as the load of a runner.
type Load string

// The loads.
const (
	QueueLoad   Load = "queue"
	RunningLoad Load = "running"
)

// DefaultConfig returns the defaults of llm-d-async.
func DefaultConfig() Config {
	return Config{MaxConcurrency: 100, Baseline: 0.05, Load: QueueLoad, PerPool: gate.AsyncWorkers,
		MaxAge: gate.PromLookback}
}

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var all faults.List
	all.AtLeast("max_concurrency", c.MaxConcurrency, 1)
	if !(c.Baseline >= 0 && c.Baseline < 1) {
		all.Add("baseline", "is %v, must be at least 0 and below 1", c.Baseline)
	}
	if c.Load != QueueLoad && c.Load != RunningLoad {
		all.Add("load", "is %q, want %s or %s", c.Load, QueueLoad, RunningLoad)
	}
	if !(c.Fallback >= 0 && c.Fallback <= 1) {
		all.Add("fallback", "is %v, must be from 0 to 1", c.Fallback)
	}
	all.AtLeast("per_pool", c.PerPool, 0)
	all.Positive("max_age", c.MaxAge)
	return all.Err()
}
