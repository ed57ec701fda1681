package builtin_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/aimd"
	_ "github.com/tidefill/tidefill/flowcontrol/builtin"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/flowcontrol/flowcontroltest"
	"github.com/tidefill/tidefill/flowcontrol/headroom"
	"github.com/tidefill/tidefill/flowcontrol/schedule"
)

// limited returns a policy's own configuration with limits that the suite checks. Without metrics
// it has to start at least one line on a runner. It reports false for a policy that it does not
// know, and returns the defaults.
func limited(policy string, limits flowcontroltest.Limits) (flowcontrol.PolicyConfig, bool) {
	switch own := flowcontrol.DefaultConfig().Settings[policy].(type) {
	case fixed.Config:
		own.PerRunner, own.PerPool = limits.PerRunner, limits.PerPool
		return own, true
	case aimd.Config:
		own.PerRunner, own.PerPool, own.Start = limits.PerRunner, limits.PerPool, 4
		return own, true
	case headroom.Config:
		own.PerRunner, own.PerPool = limits.PerRunner, limits.PerPool
		return own, true
	case schedule.Config:
		own.Rows = []schedule.Row{{Lines: limits.PerRunner},
			{At: 12*time.Hour + time.Minute, Lines: (limits.PerRunner + 1) / 2}}
		return own, true
	default:
		return own, false
	}
}

func TestPoliciesKeepTheContract(t *testing.T) {
	for _, policy := range flowcontrol.Policies() {
		all := []flowcontroltest.Limits{{PerRunner: 1}, {PerRunner: 20},
			{PerRunner: 20, PerPool: 3}, {PerRunner: 7, PerPool: 30}}
		switch policy {
		case "none":
			all = []flowcontroltest.Limits{{}}
		case "unlimited":
			all = []flowcontroltest.Limits{{PerRunner: 4096}}
		default:
			// The test of its own package checks the limits of such a policy.
			if _, known := limited(policy, all[0]); !known {
				all = []flowcontroltest.Limits{{PerRunner: 4096}}
			}
		}
		for _, limits := range all {
			t.Run(fmt.Sprintf("%s %+v", policy, limits), func(t *testing.T) {
				cfg := flowcontrol.DefaultConfig()
				cfg.Engine.CostModel = costmodel.Model{C0: 30, C1: 0.1, KV: 1e-4, P1: 0.1}
				// schedule goes by the limits of headroom too.
				if limits.PerRunner > 0 {
					own, _ := limited(headroom.Name, limits)
					cfg = cfg.With(headroom.Name, own)
				}
				cfg.Policy = policy
				if own, _ := limited(policy, limits); own != nil {
					cfg = cfg.With(policy, own)
				}
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
