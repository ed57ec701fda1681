package flowcontrol_test

import (
	"fmt"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
)

// cautious carries one line per pool, whatever happens.
type cautious struct{ runners []flowcontrol.RunnerAllowance }

func (*cautious) Name() string { return "cautious" }

func (c *cautious) Observe(_ time.Time, o flowcontrol.Observation) bool {
	joined, ok := o.(*flowcontrol.RunnerJoined)
	if !ok || len(c.runners) > 0 {
		return false
	}
	c.runners = append(c.runners, flowcontrol.RunnerAllowance{Runner: joined.Runner, Lines: 1,
		Prompt: flowcontrol.NoLimit, Reason: flowcontrol.ReasonRunnerLimit})
	return true
}

func (c *cautious) Allowance(time.Time) flowcontrol.Allowance {
	return flowcontrol.Allowance{Pool: 1, Runners: c.runners, Reason: flowcontrol.ReasonRunnerLimit}
}

// The smallest controller. A real one also respects Retry-After and forgets runners that leave:
// flowcontroltest.TestController shows what is missing.
func ExampleController() {
	var c flowcontrol.Controller = new(cautious)
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	c.Observe(now, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "gpu-0"}})
	fmt.Println(c.Allowance(now).Runners[0].Lines)
	// Output: 1
}

func ExampleNew() {
	c, err := flowcontrol.New(flowcontrol.DefaultConfig().Select(fixed.Name,
		fixed.Config{PerRunner: 100, PerPool: 150}))
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	for _, runner := range []string{"gpu-0", "gpu-1"} {
		c.Observe(now, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: runner}})
	}
	a := c.Allowance(now)
	fmt.Println(a.Pool, a.Runners[0].Lines, a.Runners[1].Lines, a.Reason)
	// Output: 150 75 75 pool_limit
}
