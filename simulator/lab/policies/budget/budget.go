// Package budget holds the flow-control policy budget, the dispatch budget of llm-d-async (its gate
// prometheus-budget), as published and with the published defaults.
//
// Of a pool that holds MaxConcurrency requests per runner, batch work may hold the share that is
// neither in use nor reserved: N = runners · MaxConcurrency · (D - Baseline) with D = 1 - load. The
// load is read from metrics, so it is as late as they are.
package budget

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/simulator/lab/policies/internal/gate"
)

// Name is the policy's name in configurations.
const Name = "budget"

func init() {
	flowcontrol.Register(Name, flowcontrol.Factory{
		Default: DefaultConfig(),
		Needs:   flowcontrol.Needs{Readings: true},
		New: func(cfg flowcontrol.Config) (flowcontrol.Controller, error) {
			return newController(flowcontrol.OwnConfig[Config](cfg, Name)), nil
		},
	})
}

type controller struct {
	cfg  Config
	gate gate.Gate
}

func newController(cfg Config) *controller {
	return &controller{cfg: cfg, gate: gate.New(cfg.MaxAge)}
}

func (*controller) Name() string { return Name }

func (c *controller) Observe(now time.Time, o flowcontrol.Observation) (changed bool) {
	return c.gate.Observe(now, o, c.level)
}

func (c *controller) level(r *flowcontrol.Reading) float64 {
	requests := r.Waiting
	if c.cfg.Load == RunningLoad {
		requests = r.Running
	}
	return requests / float64(c.cfg.MaxConcurrency)
}

func (c *controller) Allowance(now time.Time) flowcontrol.Allowance {
	load, seen, until := c.gate.Mean(now)
	free, reason := 1-min(max(load, 0), 1), gate.ReasonLoad
	switch {
	case !seen:
		free, reason = c.cfg.Fallback, gate.ReasonNoMetrics
	case c.gate.Refused: // a pool that sheds counts as full until its load is seen again
		free = 0
	}
	// In thousandths of a line, so that 0.3 and 0.7 make one.
	perRunner := math.Round(1000*float64(c.cfg.MaxConcurrency)*(free-c.cfg.Baseline)) / 1000
	if perRunner <= 0 {
		return c.gate.Grant(now, 0, 0, reason, until)
	}
	pool := max(1, int(math.Round(1000*perRunner*float64(c.gate.Runners()))/1000))
	if c.cfg.PerPool > 0 {
		pool = min(pool, c.cfg.PerPool)
	}
	return c.gate.Grant(now, int(math.Ceil(perRunner)), pool, reason, until)
}
