// Package saturation holds the flow-control policy saturation, a threshold on the load of the pool,
// as llm-d's router sheds and llm-d-async's gate prometheus-saturation closes by it.
//
// A runner's load is the larger of its waiting requests over QueueDepth and its KV use over KVUsed;
// the pool's is their mean. Below Threshold any number of lines may start, from there on none.
package saturation

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/simulator/lab/policies/internal/gate"
)

// Name is the policy's name in configurations.
const Name = "saturation"

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

// level is NaN only if a reading shows neither.
func (c *controller) level(r *flowcontrol.Reading) float64 {
	queue, kv := r.Waiting/c.cfg.QueueDepth, r.KVUsed/c.cfg.KVUsed
	switch {
	case math.IsNaN(queue):
		return kv
	case math.IsNaN(kv):
		return queue
	}
	return max(queue, kv)
}

func (c *controller) Allowance(now time.Time) flowcontrol.Allowance {
	load, seen, until := c.gate.Mean(now)
	if !seen {
		load = c.cfg.Fallback
	}
	switch {
	case load < c.cfg.Threshold && !c.gate.Refused:
		return c.gate.Grant(now, c.cfg.PerRunner, c.cfg.PerPool, flowcontrol.ReasonRunnerLimit,
			until)
	case seen:
		return c.gate.Grant(now, 0, 0, gate.ReasonLoad, until)
	default:
		return c.gate.Grant(now, 0, 0, gate.ReasonNoMetrics, until)
	}
}
