// Package model holds the flow-control policy model, which grants what the engine's cost model says
// fits beside the interactive load that metrics show.
//
// It looks at nothing that results from its grants: it is the open loop that feedback is compared
// with. It sees the load as late as metrics show it, and errs as the cost model does. The KV cache
// and the sequences that it leaves free are those of the policy headroom.
package model

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/headroom"
)

// Name is the policy's name in configurations.
const Name = "model"

func init() {
	flowcontrol.Register(Name, flowcontrol.Factory{
		Default: DefaultConfig(),
		Needs:   flowcontrol.Needs{Readings: true, Streams: true, CostModel: true},
		New: func(cfg flowcontrol.Config) (flowcontrol.Controller, error) {
			c := &controller{cfg: flowcontrol.OwnConfig[Config](cfg, Name),
				model: cfg.Engine.CostModel, slo: cfg.SLO}
			cfg.SLO = cfg.SLO.WithUsual()
			c.Controller = headroom.New(cfg)
			return c, nil
		},
	})
}

type controller struct {
	cfg   Config
	model costmodel.Model
	slo   flowcontrol.SLO
	*headroom.Controller
	changed bool
	grants  []flowcontrol.RunnerAllowance // in the order of Runners
}

func (*controller) Name() string { return Name }

func (c *controller) Observe(now time.Time, o flowcontrol.Observation) (changed bool) {
	changed = c.Controller.Observe(now, o)
	c.changed = c.changed || changed
	return changed
}

func (c *controller) Allowance(now time.Time) flowcontrol.Allowance {
	if c.Advance(now) || c.changed {
		c.changed, c.grants = false, c.grants[:0]
		mix := c.LineMix()
		for _, r := range c.Runners(now) {
			c.grants = append(c.grants, c.grant(r, mix))
		}
	}
	return c.Replace(now, c.grants)
}

// grant computes a runner's part of the allowance.
func (c *controller) grant(r headroom.Runner, mix costmodel.Mix) flowcontrol.RunnerAllowance {
	g := flowcontrol.RunnerAllowance{Runner: r.ID, Lines: r.Start, Prompt: c.cfg.PromptTokens,
		Reason: flowcontrol.ReasonGrowing}
	if r.Known {
		g.Lines, g.Reason = 0, headroom.ReasonTokenTime
		// By a cost model without a cost per line any number fits, which no int holds.
		if lines := c.model.Lines(r.Load, mix, c.target(r.Load, mix)); lines > 0 {
			g.Lines = int(min(lines, math.MaxInt32))
		}
	}
	if r.Safe < g.Lines {
		g.Lines, g.Reason = r.Safe, r.SafeReason
	}
	if r.Lines < g.Lines && r.Prefilling >= g.Prompt {
		g.Reason = flowcontrol.ReasonPrompt
	}
	return g
}

// target returns the longest time of iterations beside a load, in milliseconds. It is a share of
// the TPOT objective or, if the objective is relative, a multiple of their time without lines.
func (c *controller) target(load costmodel.Load, mix costmodel.Mix) float64 {
	if c.slo.Relative() {
		return c.slo.Slowdown * c.model.MeanIteration(load, mix, 0)
	}
	tpot := float64(c.slo.WithUsual().TPOT) / float64(time.Millisecond)
	return c.cfg.TargetShare * tpot
}
