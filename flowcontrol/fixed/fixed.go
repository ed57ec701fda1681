// Package fixed holds flow-control policies that carry a set number of lines, whatever happens.
//
// The policy fixed takes the number from its configuration, for operators who know their engines.
// none carries no line at all and unlimited any number; both are there to compare with.
package fixed

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Name is the policy's name in configurations.
const Name = "fixed"

// unlimited is the number of lines that the policy unlimited starts on a runner. It is many times
// what an engine runs at once, so that the rest waits there. An engine that queues without end
// stays alive with so many.
const unlimited = 4096

func init() {
	flowcontrol.Register(Name, flowcontrol.Factory{
		Default: DefaultConfig(),
		New: func(cfg flowcontrol.Config) (flowcontrol.Controller, error) {
			return newController(Name, flowcontrol.OwnConfig[Config](cfg, Name)), nil
		},
	})
	for name, lines := range map[string]int{"none": 0, "unlimited": unlimited} {
		flowcontrol.Register(name, flowcontrol.Factory{
			New: func(flowcontrol.Config) (flowcontrol.Controller, error) {
				return newController(name, Config{PerRunner: lines}), nil
			},
		})
	}
}

// controller carries the same number of lines always.
type controller struct {
	name   string
	lines  int // of a runner
	used   int // runners that carry lines; 0: all
	roster flowcontrol.Roster[struct{}]
}

func newController(name string, cfg Config) *controller {
	return &controller{name: name, lines: cfg.PerRunner, used: cfg.Runners,
		roster: flowcontrol.Roster[struct{}]{PerPool: cfg.PerPool}}
}

func (c *controller) Name() string { return c.name }

func (c *controller) Observe(now time.Time, o flowcontrol.Observation) (changed bool) {
	_, changed = c.roster.Observe(now, o, struct{}{})
	return changed
}

func (c *controller) Allowance(now time.Time) flowcontrol.Allowance {
	carry := len(c.roster.Members)
	if c.used > 0 {
		carry = min(carry, c.used)
	}
	return c.roster.Allowance(now, func(*flowcontrol.Member[struct{}]) (int, flowcontrol.Reason) {
		if carry--; carry < 0 {
			return 0, flowcontrol.ReasonRunnerLimit
		}
		return c.lines, flowcontrol.ReasonRunnerLimit
	})
}
