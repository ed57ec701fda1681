package aimd_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/aimd"
	"github.com/tidefill/tidefill/flowcontrol/flowcontroltest"
)

// pool returns a pool under the policy, with its defaults changed.
func pool(t testing.TB, change func(*aimd.Config)) *flowcontroltest.Pool {
	t.Helper()
	own := aimd.DefaultConfig()
	if change != nil {
		change(&own)
	}
	return flowcontroltest.NewPool(t, flowcontrol.DefaultConfig().Select(aimd.Name, own))
}

func TestNeverStepsOverTheLimit(t *testing.T) {
	p := pool(t, func(c *aimd.Config) { c.Increase, c.PerRunner = 50, 100 })
	p.Join("a")
	p.Answer("a", 16+66)
	if got := p.Of("a").Lines; got != 100 {
		t.Errorf("got %d, want 100", got)
	}
}

func TestGrowsByTheAnswers(t *testing.T) {
	p := pool(t, nil)
	p.Join("a", "b")
	p.Answer("a", 15)
	if got := p.Of("a"); got.Lines != 16 || got.Reason != flowcontrol.ReasonGrowing {
		t.Errorf("after 15 answers: %+v, want 16, growing", got)
	}
	p.Answer("a", 1)
	if got := p.Of("a").Lines; got != 17 {
		t.Errorf("after 16 answers: %d, want 17", got)
	}
	if got := p.Of("b").Lines; got != 16 {
		t.Errorf("the other runner has %d, want 16 as before", got)
	}
	for range 1000 { // carries too little to prove anything
		p.Observe(p.Now, &flowcontrol.Answered{Load: flowcontrol.Load{Runner: "a", InFlight: 5}})
	}
	if got := p.Of("a").Lines; got != 17 {
		t.Errorf("after many answers at low load: %d, want 17", got)
	}
	p.Answer("a", 20_000)
	if got := p.Of("a"); got.Lines != 128 || got.Reason != flowcontrol.ReasonRunnerLimit {
		t.Errorf("in the end: %+v, want 128, runner_limit", got)
	}
}

func TestCutsOncePerBurst(t *testing.T) {
	p := pool(t, nil)
	p.Join("a")
	for range 10 {
		p.Observe(p.Now, &flowcontrol.Shed{Load: flowcontrol.Load{Runner: "a"}})
	}
	p.Shed("a")
	if got := p.Of("a"); got.Lines != 11 || got.Reason != flowcontrol.ReasonShed {
		t.Errorf("after a burst: %+v, want 16 * 0.7 = 11, shed", got)
	}
	p.Shed("a") // one second after the first
	if got := p.Of("a").Lines; got != 11 {
		t.Errorf("a second later: %d, want 11 still", got)
	}
	p.Shed("a")
	if got := p.Of("a").Lines; got != 7 {
		t.Errorf("two seconds later: %d, want 7", got)
	}
	for range 100 {
		p.Shed("a")
	}
	if got := p.Of("a").Lines; got != 1 {
		t.Errorf("after 100 sheds: %d, want 1, the least", got)
	}
	p.Answer("a", 1+2+3)
	if got := p.Of("a").Lines; got != 4 {
		t.Errorf("recovered to %d, want 4", got)
	}
}

// The published setting: start at 5, never below, half after a shed, one more after a round of
// answers.
func TestAsPublished(t *testing.T) {
	p := pool(t, func(c *aimd.Config) { c.Start, c.Min, c.Decrease = 5, 5, 0.5 })
	p.Join("a")
	p.Answer("a", 5+6+7+8+9+10+11)
	if got := p.Of("a").Lines; got != 12 {
		t.Errorf("after seven rounds %d lines, want 12", got)
	}
	for _, want := range []int{6, 5, 5} {
		p.Shed("a")
		p.Now = p.Now.Add(2 * time.Second)
		if got := p.Of("a").Lines; got != want {
			t.Errorf("after a shed %d lines, want %d", got, want)
		}
	}
}

func TestShedStartsTheCountAgain(t *testing.T) {
	p := pool(t, nil)
	p.Join("a")
	p.Answer("a", 15)
	p.Shed("a")
	p.Answer("a", 10)
	if got := p.Of("a").Lines; got != 11 {
		t.Errorf("got %d, want 11: ten answers since the shed are not a limit's worth", got)
	}
	p.Answer("a", 1)
	if got := p.Of("a").Lines; got != 12 {
		t.Errorf("got %d, want 12", got)
	}
}

// On a runner that sheds above some number of lines, aimd stays near that number.
func TestFindsTheCapacity(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		capacity := rapid.IntRange(2, 40).Draw(rt, "capacity")
		p := pool(t, nil)
		p.Join("a")
		highest, lowest := 0, 1000
		for i := range 4000 {
			lines := p.Of("a").Lines
			if lines > capacity {
				p.Shed("a")
				p.Now = p.Now.Add(time.Second)
			} else {
				p.Answer("a", 1)
			}
			if i > 2000 {
				highest, lowest = max(highest, lines), min(lowest, lines)
			}
		}
		if highest > capacity+1 || lowest < (capacity+1)*7/10 {
			rt.Fatalf("capacity %d: between %d and %d lines", capacity, lowest, highest)
		}
	})
}

func TestConfigFaultsNameTheirField(t *testing.T) {
	flowcontroltest.TestFaults(t, aimd.DefaultConfig(), map[string]func(*aimd.Config){
		"start: ":      func(c *aimd.Config) { c.Start = 0 },
		"min: ":        func(c *aimd.Config) { c.Min = 0 },
		"per_runner: ": func(c *aimd.Config) { c.PerRunner = 0 },
		"per_pool: ":   func(c *aimd.Config) { c.PerPool = -1 },
		"decrease: ":   func(c *aimd.Config) { c.Decrease = 1 },
	})
}

// A budget permits as many requests in a minute as it has, but for those of its first second.
func TestBudgetOfRequests(t *testing.T) {
	p := pool(t, func(c *aimd.Config) { c.RequestsPerMinute, c.Start = 120, 100 })
	p.Join("a")
	started, inFlight := 0, 0
	for end := p.Now.Add(time.Minute); p.Now.Before(end); p.Now = p.Now.Add(50 * time.Millisecond) {
		for p.Of("a").Lines > inFlight {
			started, inFlight = started+1, inFlight+1
			p.Observe(p.Now, &flowcontrol.Started{Load: flowcontrol.Load{Runner: "a",
				InFlight: inFlight}, PromptTokens: 10})
		}
		if inFlight > 10 {
			inFlight--
			p.Observe(p.Now, &flowcontrol.Answered{Load: flowcontrol.Load{Runner: "a",
				InFlight: inFlight}, PromptTokens: 10, OutputTokens: 10})
		}
	}
	if started < 115 || started > 122 {
		t.Errorf("%d requests were started in a minute, want 120", started)
	}
}

// Tokens that answers have used count, not those that were expected.
func TestBudgetOfTokens(t *testing.T) {
	p := pool(t, func(c *aimd.Config) { c.TokensPerMinute, c.Start = 60_000, 100 })
	p.Join("a")
	used := 0
	for end := p.Now.Add(10 * time.Minute); p.Now.Before(end); p.Now = p.Now.Add(time.Second / 10) {
		for p.Of("a").Lines > 0 {
			p.Observe(p.Now, &flowcontrol.Started{Load: flowcontrol.Load{Runner: "a", InFlight: 1},
				PromptTokens: 100})
			used += 100 + 400
			p.Observe(p.Now, &flowcontrol.Answered{Load: flowcontrol.Load{Runner: "a"},
				PromptTokens: 100, OutputTokens: 400})
		}
	}
	if used < 590_000 || used > 610_000 {
		t.Errorf("%d tokens were used in ten minutes, want 600,000", used)
	}
}
