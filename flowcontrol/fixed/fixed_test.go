package fixed_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/flowcontrol/flowcontroltest"
)

func TestFixedSharesThePoolOut(t *testing.T) {
	p := flowcontroltest.NewPool(t, flowcontrol.DefaultConfig().Select(fixed.Name,
		fixed.Config{PerRunner: 6, PerPool: 11}))
	grants := func() string {
		var b strings.Builder
		a := p.Allowance(p.Now)
		for _, r := range a.Runners {
			fmt.Fprintf(&b, "%s=%d:%s ", r.Runner, r.Lines, r.Reason)
		}
		return b.String() + string(a.Reason)
	}
	expect := func(want string) {
		t.Helper()
		if got := grants(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	expect("no_runner")
	p.Join("c")
	expect("c=6:runner_limit runner_limit")
	p.Join("a")
	expect("a=5:pool_limit c=6:runner_limit pool_limit")
	p.Join("b")
	expect("a=3:pool_limit b=4:pool_limit c=4:pool_limit pool_limit")
	p.Observe(p.Now, &flowcontrol.Shed{Load: flowcontrol.Load{Runner: "b"},
		RetryAfter: time.Minute})
	expect("a=5:pool_limit b=0:retry_after c=6:runner_limit pool_limit")
	p.Now = p.Now.Add(time.Minute)
	expect("a=3:pool_limit b=4:pool_limit c=4:pool_limit pool_limit")
}

func TestThePoolsReasonIsItsLimitWhereThatBinds(t *testing.T) {
	p := flowcontroltest.NewPool(t, flowcontrol.DefaultConfig().Select(fixed.Name,
		fixed.Config{PerRunner: 6, PerPool: 17}))
	p.Join("a", "b", "c")
	if a := p.Allowance(p.Now); a.Reason != flowcontrol.ReasonPoolLimit {
		t.Errorf("got %+v, want pool_limit although two of three have their full limit", a)
	}
	p.Observe(p.Now, &flowcontrol.RunnerLeft{Runner: "b"})
	if a := p.Allowance(p.Now); a.Reason != flowcontrol.ReasonRunnerLimit {
		t.Errorf("got %+v, want runner_limit", a)
	}
}

func TestNoneStartsNothing(t *testing.T) {
	p := policy(t, "none")
	p.Join("a")
	if a := p.Allowance(p.Now); a.Runners[0].Lines != 0 || p.Name() != "none" {
		t.Errorf("%s grants %+v", p.Name(), a)
	}
}

func TestUnlimitedStartsMoreThanAnyEngineRuns(t *testing.T) {
	p := policy(t, "unlimited")
	p.Join("a")
	if a := p.Allowance(p.Now); a.Runners[0].Lines < 1024 || a.Pool != flowcontrol.NoLimit ||
		p.Name() != "unlimited" {
		t.Errorf("%s grants %+v", p.Name(), a)
	}
}

func policy(t *testing.T, name string) *flowcontroltest.Pool {
	t.Helper()
	cfg := flowcontrol.DefaultConfig()
	cfg.Policy = name
	return flowcontroltest.NewPool(t, cfg)
}

func TestConfigFaultsNameTheirField(t *testing.T) {
	flowcontroltest.TestFaults(t, fixed.DefaultConfig(), map[string]func(*fixed.Config){
		"per_runner: ": func(c *fixed.Config) { c.PerRunner = 0 },
		"per_pool: ":   func(c *fixed.Config) { c.PerPool = -1 },
	})
}

func TestFixedLeavesRunnersFree(t *testing.T) {
	p := flowcontroltest.NewPool(t, flowcontrol.DefaultConfig().Select(fixed.Name,
		fixed.Config{PerRunner: 6, Runners: 2}))
	p.Join("c", "a", "b")
	var lines []int
	for _, r := range p.Allowance(p.Now).Runners {
		lines = append(lines, r.Lines)
	}
	if fmt.Sprint(lines) != "[6 6 0]" {
		t.Errorf("lines are %v, want 6 on the first two runners", lines)
	}
}
