package budget_test

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/flowcontroltest"
	"github.com/tidefill/tidefill/simulator/lab/policies/budget"
	"github.com/tidefill/tidefill/simulator/lab/policies/internal/gate"
)

// pool returns a pool under the policy, with its defaults changed.
func pool(t *testing.T, change func(*budget.Config)) *flowcontroltest.Pool {
	t.Helper()
	own := budget.DefaultConfig()
	if change != nil {
		change(&own)
	}
	return flowcontroltest.NewPool(t, flowcontrol.DefaultConfig().Select(budget.Name, own))
}

func waiting(requests float64) func(*flowcontrol.Reading) {
	return func(r *flowcontrol.Reading) { r.Waiting = requests }
}

// The example of llm-d-async's documentation: five servers that hold 10 requests, F = 0.3 and B =
// 0.1 make 30.
func TestThePublishedExample(t *testing.T) {
	p := pool(t, func(c *budget.Config) {
		c.MaxConcurrency, c.Baseline = 10, 0.1
	})
	runners := []string{"a", "b", "c", "d", "e"}
	p.Join(runners...)
	if a := p.Allowance(p.Now); a.Runners[0].Lines != 0 || a.Reason != gate.ReasonNoMetrics {
		t.Errorf("before any metric: %+v, want nothing", a)
	}
	for i, r := range runners {
		p.Read(r, waiting([]float64{0, 2, 3, 4, 6}[i]))
	}
	a := p.Allowance(p.Now)
	if a.Pool != 30 {
		t.Errorf("got %+v, want 30 in the pool", a)
	}
	for _, r := range a.Runners {
		if r.Lines != 6 {
			t.Errorf("got %+v, want 6 of the 30", r)
		}
	}
}

func TestClosesAtTheBaseline(t *testing.T) {
	p := pool(t, func(c *budget.Config) {
		c.MaxConcurrency, c.Load = 20, budget.RunningLoad
	})
	p.Join("a")
	for running, want := range map[float64]int{0: 19, 10: 9, 18: 1, 18.9: 1, 19: 0, 40: 0} {
		p.Read("a", func(r *flowcontrol.Reading) { r.Running = running })
		if got := p.Of("a").Lines; got != want {
			t.Errorf("%v running: %d lines, want %d", running, got, want)
		}
	}
}

func TestRefusalCountsAsAFullPoolUntilItIsSeenAgain(t *testing.T) {
	p := pool(t, nil)
	p.Join("a", "b")
	p.Read("a", waiting(0))
	p.Shed("a")
	if a := p.Allowance(p.Now); a.Runners[0].Lines != 0 || a.Runners[1].Lines != 0 ||
		a.Reason != gate.ReasonLoad {
		t.Errorf("after a refusal: %+v, want nothing anywhere", a)
	}
	p.Read("b", waiting(0))
	if a := p.Allowance(p.Now); a.Runners[0].Lines == 0 || a.Runners[1].Lines == 0 {
		t.Errorf("after a new reading: %+v, want lines again", a)
	}
}

// A reading that was sampled before a shed does not show the load that shed it.
func TestReadingsFromBeforeARefusalDoNotEndIt(t *testing.T) {
	p := pool(t, nil)
	p.Join("a", "b")
	p.Read("a", waiting(0))
	before := p.Now
	p.Shed("a")
	p.Read("b", func(r *flowcontrol.Reading) { r.Waiting, r.Sampled = 0, before })
	if a := p.Allowance(p.Now); a.Runners[0].Lines != 0 || a.Reason != gate.ReasonLoad {
		t.Errorf("after a reading from before the refusal: %+v, want nothing", a)
	}
	if p.Read("b", waiting(0)); p.Of("b").Lines == 0 {
		t.Errorf("after a reading from after the refusal: %+v, want lines", p.Of("b"))
	}
}

func TestOldReadingsAreNotUsed(t *testing.T) {
	p := pool(t, func(c *budget.Config) { c.MaxAge = time.Minute })
	p.Join("a")
	p.Read("a", waiting(0))
	fresh := p.Allowance(p.Now)
	if want := p.Now.Add(time.Minute); fresh.Runners[0].Lines == 0 || !fresh.Until.Equal(want) {
		t.Errorf("%+v, want lines until %v", fresh, want)
	}
	p.Now = fresh.Until
	if a := p.Allowance(p.Now); a.Runners[0].Lines != 0 || a.Reason != gate.ReasonNoMetrics ||
		!a.Until.IsZero() {
		t.Errorf("a minute later: %+v, want nothing, no_metrics", a)
	}
}

func TestConfigFaultsNameTheirField(t *testing.T) {
	flowcontroltest.TestFaults(t, budget.DefaultConfig(), map[string]func(*budget.Config){
		"max_concurrency: ": func(c *budget.Config) { c.MaxConcurrency = 0 },
		"baseline: ":        func(c *budget.Config) { c.Baseline = 1 },
		"load: ":            func(c *budget.Config) { c.Load = "gpu" },
		"fallback: ":        func(c *budget.Config) { c.Fallback = 2 },
		"per_pool: ":        func(c *budget.Config) { c.PerPool = -1 },
		"max_age: ":         func(c *budget.Config) { c.MaxAge = 0 },
	})
}
