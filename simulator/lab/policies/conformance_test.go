package policies_test

import (
	"fmt"
	"testing"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/flowcontroltest"
	"github.com/tidefill/tidefill/flowcontrol/headroom"
	_ "github.com/tidefill/tidefill/simulator/lab/policies"
	"github.com/tidefill/tidefill/simulator/lab/policies/budget"
	"github.com/tidefill/tidefill/simulator/lab/policies/gradient"
	"github.com/tidefill/tidefill/simulator/lab/policies/model"
	"github.com/tidefill/tidefill/simulator/lab/policies/saturation"
)

// names are those of the policies that the daemon does not have.
var names = []string{budget.Name, saturation.Name, gradient.Name, model.Name}

// limited returns the default configuration with a policy and with limits that the suite checks.
// Without metrics the policy has to start at least one line on a runner.
func limited(policy string, limits flowcontroltest.Limits) flowcontrol.Config {
	cfg := flowcontrol.DefaultConfig()
	cfg.Engine.CostModel = costmodel.Model{C0: 30, C1: 0.1, KV: 1e-4, P1: 0.1}
	cfg.Policy = policy
	switch own := cfg.Selected().(type) {
	case budget.Config:
		own.MaxConcurrency, own.PerPool, own.Fallback = limits.PerRunner, limits.PerPool, 1
		return cfg.With(policy, own)
	case saturation.Config:
		own.PerRunner, own.PerPool = limits.PerRunner, limits.PerPool
		return cfg.With(policy, own)
	case gradient.Config:
		own.Min, own.Initial, own.Max = 1, min(4, limits.PerRunner), limits.PerRunner
		own.PerPool = limits.PerPool
		return cfg.With(policy, own)
	case model.Config: // its limits are those of headroom
		like := cfg.Settings[headroom.Name].(headroom.Config)
		like.PerRunner, like.PerPool = limits.PerRunner, limits.PerPool
		return cfg.With(headroom.Name, like)
	}
	panic("no limits for " + policy)
}

func TestPoliciesKeepTheContract(t *testing.T) {
	for _, policy := range names {
		for _, limits := range []flowcontroltest.Limits{{PerRunner: 1}, {PerRunner: 20},
			{PerRunner: 20, PerPool: 3}, {PerRunner: 7, PerPool: 30}} {
			t.Run(fmt.Sprintf("%s %+v", policy, limits), func(t *testing.T) {
				cfg := limited(policy, limits)
				flowcontroltest.TestController(t, limits, flowcontrol.NeedsOf(policy),
					func() flowcontrol.Controller {
						c, err := flowcontrol.New(cfg)
						if err != nil {
							t.Fatal(err)
						}
						return c
					})
			})
		}
	}
}
