package flowcontrol

import (
	"math"
	"time"
)

// budget is the dispatch budget of llm-d-async (its gate prometheus-budget): of a pool that holds
// MaxConcurrency requests per runner, batch work may hold the share that is neither in use nor kept
// back, N = runners · MaxConcurrency · (D - Baseline) with D = 1 - load. The load is read from
// metrics and comes as late as these do.
type budget struct {
	cfg BudgetConfig
	gate
}

// BudgetConfig is that of a dispatch budget, with llm-d-async's names and defaults.
type BudgetConfig struct {
	// MaxConcurrency is how many requests a runner is taken to hold, at least 1. Default: 100, as
	// llm-d's scheduler assumes.
	MaxConcurrency int `yaml:"max_concurrency"`
	// Baseline is the share that is kept back, 0 or more and below 1. Default: 0.05.
	Baseline float64 `yaml:"baseline"`
	// Load is what counts as in use: queue, the requests that wait in the engines, which every pool
	// shows, or running, those that run there. Default: queue, the first that llm-d-async finds
	// where the router's own flow control is off, as it is by default.
	Load BudgetLoad `yaml:"load"`
	// Fallback is D while no load is known, 0 to 1. Default: 0, which starts nothing.
	Fallback float64 `yaml:"fallback"`
	// PerPool is how many lines the pool carries at most; 0: no limit. Default: 64, the workers of
	// llm-d-async.
	PerPool int `yaml:"per_pool"`
	// Stale is the age from which a reading is no longer used. Default: 5m, how far back Prometheus
	// looks.
	Stale time.Duration `yaml:"stale"`
}

// BudgetLoad is what a dispatch budget takes for the load of a runner.
type BudgetLoad string

const (
	QueueLoad   BudgetLoad = "queue"
	RunningLoad BudgetLoad = "running"
)

func defaultBudget() BudgetConfig {
	return BudgetConfig{MaxConcurrency: 100, Baseline: 0.05, Load: QueueLoad, PerPool: asyncWorkers,
		Stale: promLookback}
}

func (c BudgetConfig) validate(all *faults) {
	all.atLeast("budget.max_concurrency", c.MaxConcurrency, 1)
	if !(c.Baseline >= 0 && c.Baseline < 1) {
		all.add("budget.baseline", "is %v, must be at least 0 and below 1", c.Baseline)
	}
	if c.Load != QueueLoad && c.Load != RunningLoad {
		all.add("budget.load", "is %q, want %s or %s", c.Load, QueueLoad, RunningLoad)
	}
	if !(c.Fallback >= 0 && c.Fallback <= 1) {
		all.add("budget.fallback", "is %v, must be from 0 to 1", c.Fallback)
	}
	all.atLeast("budget.per_pool", c.PerPool, 0)
	if c.Stale <= 0 {
		all.add("budget.stale", "is %v, must be positive", c.Stale)
	}
}

func newBudget(cfg BudgetConfig) *budget { return &budget{cfg: cfg, gate: newGate(cfg.Stale)} }

func (*budget) Name() string { return "budget" }

func (b *budget) Observe(now time.Time, o Observation) (changed bool) {
	return b.observe(now, o, b.level)
}

func (b *budget) level(r *Reading) float64 {
	requests := r.Waiting
	if b.cfg.Load == RunningLoad {
		requests = r.Running
	}
	return requests / float64(b.cfg.MaxConcurrency)
}

func (b *budget) Allowance(now time.Time) Allowance {
	load, seen, until := b.mean(now)
	free, reason := 1-min(max(load, 0), 1), ReasonLoad
	switch {
	case !seen:
		free, reason = b.cfg.Fallback, ReasonNoMetrics
	case b.refused: // a pool that refuses is taken for full until its load is seen again
		free = 0
	}
	// In thousandths of a line, so that 0.3 and 0.7 make one.
	perRunner := math.Round(1000*float64(b.cfg.MaxConcurrency)*(free-b.cfg.Baseline)) / 1000
	if perRunner <= 0 {
		return b.grant(now, 0, 0, reason, until)
	}
	pool := max(1, int(math.Round(1000*perRunner*float64(len(b.members)))/1000))
	if b.cfg.PerPool > 0 {
		pool = min(pool, b.cfg.PerPool)
	}
	return b.grant(now, int(math.Ceil(perRunner)), pool, reason, until)
}
