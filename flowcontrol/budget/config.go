package budget

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol/internal/faults"
	"github.com/tidefill/tidefill/flowcontrol/internal/gate"
)

// Config is the configuration of a dispatch budget, with llm-d-async's names and defaults.
type Config struct {
	// MaxConcurrency is how many requests a runner is taken to hold, at least 1. Default: 100, as
	// llm-d's scheduler assumes.
	MaxConcurrency int `yaml:"max_concurrency"`
	// Baseline is the share that is kept back, 0 or more and below 1. Default: 0.05.
	Baseline float64 `yaml:"baseline"`
	// Load is what counts as in use: queue, the requests that wait in the engines, which every pool
	// shows, or running, those that run there. Default: queue, the first that llm-d-async finds
	// where the router's own flow control is off, as it is by default.
	Load Load `yaml:"load"`
	// Fallback is D while no load is known, 0 to 1. Default: 0, which starts nothing.
	Fallback float64 `yaml:"fallback"`
	// PerPool is how many lines the pool carries at most; 0: no limit. Default: 64, the workers of
	// llm-d-async.
	PerPool int `yaml:"per_pool"`
	// Stale is the age from which a reading is no longer used. Default: 5m, how far back Prometheus
	// looks.
	Stale time.Duration `yaml:"stale"`
}

// Load is what the policy counts as the load of a runner.
type Load string

const (
	QueueLoad   Load = "queue"
	RunningLoad Load = "running"
)

// DefaultConfig returns the defaults of llm-d-async.
func DefaultConfig() Config {
	return Config{MaxConcurrency: 100, Baseline: 0.05, Load: QueueLoad, PerPool: gate.AsyncWorkers,
		Stale: gate.PromLookback}
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
	all.Positive("stale", c.Stale)
	return all.Err()
}
