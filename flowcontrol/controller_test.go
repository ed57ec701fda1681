package flowcontrol_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/flowcontroltest"
)

var noon = flowcontroltest.Noon

func newController(t interface {
	Helper()
	Fatal(...any)
}, cfg flowcontrol.Config) flowcontrol.Controller {
	t.Helper()
	c, err := flowcontrol.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestControllers(t *testing.T) {
	for _, policy := range flowcontrol.Policies() {
		if policy == "none" || policy == "unlimited" {
			continue // fixed, with limits that the suite can't see
		}
		for _, limits := range []flowcontroltest.Limits{{PerRunner: 1}, {PerRunner: 20},
			{PerRunner: 20, PerPool: 3}, {PerRunner: 7, PerPool: 30}} {
			t.Run(fmt.Sprintf("%s %+v", policy, limits), func(t *testing.T) {
				cfg := flowcontrol.DefaultConfig()
				cfg.Policy = policy
				cfg.Fixed.PerRunner, cfg.Fixed.PerPool = limits.PerRunner, limits.PerPool
				cfg.AIMD.PerRunner, cfg.AIMD.PerPool = limits.PerRunner, limits.PerPool
				cfg.AIMD.Start = 4
				cfg.Probe.PerRunner, cfg.Probe.PerPool = limits.PerRunner, limits.PerPool
				// Without metrics these start something only where they are told to.
				cfg.Budget.MaxConcurrency, cfg.Budget.PerPool,
					cfg.Budget.Fallback = limits.PerRunner, limits.PerPool, 1
				cfg.Saturation.PerRunner, cfg.Saturation.PerPool = limits.PerRunner, limits.PerPool
				cfg.Gradient.Min, cfg.Gradient.Initial, cfg.Gradient.Max = 1, min(
					4, limits.PerRunner), limits.PerRunner
				cfg.Gradient.PerPool = limits.PerPool
				cfg.Engine.CostModel = costmodel.Model{C0: 30, C1: 0.1, KV: 1e-4, P1: 0.1}
				cfg.Schedule.Rows = []flowcontrol.ScheduleRow{{Lines: limits.PerRunner}, {
					At: 12*time.Hour + time.Minute, Lines: (limits.PerRunner + 1) / 2}}
				flowcontroltest.TestController(t, limits, func() flowcontrol.Controller {
					return newController(t, cfg)
				})
			})
		}
	}
}

// pool feeds a controller in a test.
type pool struct {
	flowcontrol.Controller
	now time.Time
}

func (p *pool) join(runners ...string) {
	for _, r := range runners {
		p.Observe(p.now, flowcontrol.Observation{Kind: flowcontrol.RunnerJoined, Runner: r})
	}
}

// answer reports n answers of a runner that is kept as full as it may be.
func (p *pool) answer(runner string, n int) {
	for range n {
		p.Observe(p.now, flowcontrol.Observation{Kind: flowcontrol.Answered, Runner: runner,
			InFlight: p.of(runner).Lines - 1})
	}
}

// shed reports a refusal and lets its pause pass.
func (p *pool) shed(runner string) {
	p.Observe(p.now, flowcontrol.Observation{Kind: flowcontrol.Shed, Runner: runner})
	p.now = p.now.Add(flowcontrol.LongestPause)
}

func (p *pool) of(runner string) flowcontrol.RunnerAllowance {
	a := p.Allowance(p.now)
	i := slices.IndexFunc(a.Runners, func(r flowcontrol.RunnerAllowance) bool {
		return r.Runner == runner
	})
	return a.Runners[i]
}

func TestFixedSharesThePoolOut(t *testing.T) {
	cfg := flowcontrol.DefaultConfig()
	cfg.Policy, cfg.Fixed = "fixed", flowcontrol.FixedConfig{PerRunner: 6, PerPool: 11}
	p := &pool{newController(t, cfg), noon}
	grants := func() string {
		var b strings.Builder
		a := p.Allowance(p.now)
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
	p.join("c")
	expect("c=6:runner_limit runner_limit")
	p.join("a")
	expect("a=5:pool_limit c=6:runner_limit pool_limit")
	p.join("b")
	expect("a=3:pool_limit b=4:pool_limit c=4:pool_limit pool_limit")
	p.Observe(p.now, flowcontrol.Observation{Kind: flowcontrol.Shed,
		Runner: "b", RetryAfter: time.Minute})
	expect("a=5:pool_limit b=0:retry_after c=6:runner_limit pool_limit")
	p.now = p.now.Add(time.Minute)
	expect("a=3:pool_limit b=4:pool_limit c=4:pool_limit pool_limit")
}

func TestThePoolsReasonIsItsLimitWhereThatBinds(t *testing.T) {
	cfg := flowcontrol.DefaultConfig()
	cfg.Policy, cfg.Fixed = "fixed", flowcontrol.FixedConfig{PerRunner: 6, PerPool: 17}
	p := &pool{newController(t, cfg), noon}
	p.join("a", "b", "c")
	if a := p.Allowance(p.now); a.Reason != flowcontrol.ReasonPoolLimit {
		t.Errorf("got %+v, want pool_limit although two of three have their full limit", a)
	}
	p.Observe(p.now, flowcontrol.Observation{Kind: flowcontrol.RunnerLeft, Runner: "b"})
	if a := p.Allowance(p.now); a.Reason != flowcontrol.ReasonRunnerLimit {
		t.Errorf("got %+v, want runner_limit", a)
	}
}

func TestAIMDNeverStepsOverTheLimit(t *testing.T) {
	cfg := flowcontrol.DefaultConfig()
	cfg.AIMD.Increase, cfg.AIMD.PerRunner = 50, 100
	p := &pool{newController(t, cfg), noon}
	p.join("a")
	p.answer("a", 16+66)
	if got := p.of("a").Lines; got != 100 {
		t.Errorf("got %d, want 100", got)
	}
}

func TestAIMDGrowsByTheAnswers(t *testing.T) {
	p := &pool{newController(t, flowcontrol.DefaultConfig()), noon}
	p.join("a", "b")
	p.answer("a", 15)
	if got := p.of("a"); got.Lines != 16 || got.Reason != flowcontrol.ReasonLearning {
		t.Errorf("after 15 answers: %+v, want 16, learning", got)
	}
	p.answer("a", 1)
	if got := p.of("a").Lines; got != 17 {
		t.Errorf("after 16 answers: %d, want 17", got)
	}
	if got := p.of("b").Lines; got != 16 {
		t.Errorf("the other runner has %d, want 16 as before", got)
	}
	for range 1000 { // carries too little to prove anything
		p.Observe(p.now, flowcontrol.Observation{Kind: flowcontrol.Answered,
			Runner: "a", InFlight: 5})
	}
	if got := p.of("a").Lines; got != 17 {
		t.Errorf("after many answers at low load: %d, want 17", got)
	}
	p.answer("a", 20_000)
	if got := p.of("a"); got.Lines != 128 || got.Reason != flowcontrol.ReasonRunnerLimit {
		t.Errorf("in the end: %+v, want 128, runner_limit", got)
	}
}

func TestAIMDCutsOncePerBurst(t *testing.T) {
	p := &pool{newController(t, flowcontrol.DefaultConfig()), noon}
	p.join("a")
	for range 10 {
		p.Observe(p.now, flowcontrol.Observation{Kind: flowcontrol.Shed, Runner: "a"})
	}
	p.shed("a")
	if got := p.of("a"); got.Lines != 11 || got.Reason != flowcontrol.ReasonShed {
		t.Errorf("after a burst: %+v, want 16 * 0.7 = 11, shed", got)
	}
	p.shed("a") // one second after the first
	if got := p.of("a").Lines; got != 11 {
		t.Errorf("a second later: %d, want 11 still", got)
	}
	p.shed("a")
	if got := p.of("a").Lines; got != 7 {
		t.Errorf("two seconds later: %d, want 7", got)
	}
	for range 100 {
		p.shed("a")
	}
	if got := p.of("a").Lines; got != 1 {
		t.Errorf("after 100 sheds: %d, want 1, the least", got)
	}
	p.answer("a", 1+2+3)
	if got := p.of("a").Lines; got != 4 {
		t.Errorf("recovered to %d, want 4", got)
	}
}

// The setting that others publish: from 5, never below, half after a shed, one more for a round of
// answers.
func TestAIMDAsPublished(t *testing.T) {
	cfg := flowcontrol.DefaultConfig()
	cfg.AIMD.Start, cfg.AIMD.Least, cfg.AIMD.Decrease = 5, 5, 0.5
	p := &pool{newController(t, cfg), noon}
	p.join("a")
	p.answer("a", 5+6+7+8+9+10+11)
	if got := p.of("a").Lines; got != 12 {
		t.Errorf("after seven rounds %d lines, want 12", got)
	}
	for _, want := range []int{6, 5, 5} {
		p.shed("a")
		p.now = p.now.Add(2 * time.Second)
		if got := p.of("a").Lines; got != want {
			t.Errorf("after a shed %d lines, want %d", got, want)
		}
	}
}

func TestAIMDAShedStartsTheCountAgain(t *testing.T) {
	p := &pool{newController(t, flowcontrol.DefaultConfig()), noon}
	p.join("a")
	p.answer("a", 15)
	p.shed("a")
	p.answer("a", 10)
	if got := p.of("a").Lines; got != 11 {
		t.Errorf("got %d, want 11: ten answers since the shed are not a limit's worth", got)
	}
	p.answer("a", 1)
	if got := p.of("a").Lines; got != 12 {
		t.Errorf("got %d, want 12", got)
	}
}

// Against a runner that sheds above a number it never tells, aimd stays near that number.
func TestAIMDFindsTheCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(2, 40).Draw(t, "capacity")
		p := &pool{newController(t, flowcontrol.DefaultConfig()), noon}
		p.join("a")
		highest, lowest := 0, 1000
		for i := range 4000 {
			lines := p.of("a").Lines
			if lines > capacity {
				p.shed("a")
				p.now = p.now.Add(time.Second)
			} else {
				p.answer("a", 1)
			}
			if i > 2000 {
				highest, lowest = max(highest, lines), min(lowest, lines)
			}
		}
		if highest > capacity+1 || lowest < (capacity+1)*7/10 {
			t.Fatalf("capacity %d: between %d and %d lines", capacity, lowest, highest)
		}
	})
}

func TestUnknownPolicyNamesTheNearest(t *testing.T) {
	cfg := flowcontrol.DefaultConfig()
	cfg.Policy = "fix"
	_, err := flowcontrol.New(cfg)
	if err == nil || !strings.Contains(err.Error(),
		`did you mean "fixed"? there are aimd, budget, fixed`) {
		t.Errorf("got %v, want the nearest and all names", err)
	}
}

func TestConfigFaultsNameTheirField(t *testing.T) {
	if err := flowcontrol.DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for field, spoil := range map[string]func(*flowcontrol.Config){
		"fixed.per_runner: ":    func(c *flowcontrol.Config) { c.Fixed.PerRunner = 0 },
		"fixed.per_pool: ":      func(c *flowcontrol.Config) { c.Fixed.PerPool = -1 },
		"aimd.start: ":          func(c *flowcontrol.Config) { c.AIMD.Start = 0 },
		"aimd.least: ":          func(c *flowcontrol.Config) { c.AIMD.Least = 0 },
		"aimd.per_runner: ":     func(c *flowcontrol.Config) { c.AIMD.PerRunner = 0 },
		"aimd.per_pool: ":       func(c *flowcontrol.Config) { c.AIMD.PerPool = -1 },
		"aimd.increase: ":       func(c *flowcontrol.Config) { c.AIMD.Increase = 0 },
		"aimd.decrease: ":       func(c *flowcontrol.Config) { c.AIMD.Decrease = 1 },
		"aimd.decrease_every: ": func(c *flowcontrol.Config) { c.AIMD.DecreaseEvery = -1 },
	} {
		cfg := flowcontrol.DefaultConfig()
		spoil(&cfg)
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("got %v, want a fault of %s", err, field)
		}
	}
}
