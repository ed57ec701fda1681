// Package gradient holds the flow-control policy gradient, Netflix's Gradient2
// (concurrency-limits), as published and with the published defaults.
//
// A runner's limit follows the ratio of its long-term mean latency to that of the last window,
// which falls below one when requests begin to queue. The policy takes every answer's latency as it
// is, so lines of different lengths look to it like a load that varies.
package gradient

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Name is the policy's name in configurations.
const Name = "gradient"

func init() {
	flowcontrol.Register(Name, flowcontrol.Factory{
		Default: DefaultConfig(),
		New: func(cfg flowcontrol.Config) (flowcontrol.Controller, error) {
			return newController(flowcontrol.OwnConfig[Config](cfg, Name)), nil
		},
	})
}

type controller struct {
	cfg    Config
	roster flowcontrol.Roster[slope]
}

func newController(cfg Config) *controller {
	return &controller{cfg: cfg, roster: flowcontrol.Roster[slope]{PerPool: cfg.PerPool}}
}

func (*controller) Name() string { return Name }

func (c *controller) Observe(now time.Time, o flowcontrol.Observation) (changed bool) {
	m, changed := c.roster.Observe(now, o, slope{limit: float64(c.cfg.Initial),
		due: now.Add(c.cfg.Tuning.Window)})
	answer, isAnswer := o.(*flowcontrol.Answered)
	if m == nil || !isAnswer {
		return changed
	}
	before := int(m.State.limit)
	return m.State.answered(now, answer, c.cfg) != before
}

func (c *controller) Allowance(now time.Time) flowcontrol.Allowance {
	return c.roster.Allowance(now, func(m *flowcontrol.Member[slope]) (int, flowcontrol.Reason) {
		limit := int(m.State.limit)
		if limit >= c.cfg.Max {
			return limit, flowcontrol.ReasonRunnerLimit
		}
		return limit, flowcontrol.ReasonGrowing
	})
}
