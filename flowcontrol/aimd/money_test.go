package aimd_test

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/aimd"
	"github.com/tidefill/tidefill/flowcontrol/flowcontroltest"
)

var evening = time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)

// spending returns a controller of a runner a, whose lines may cost so much per day: a prompt of
// 1,000 tokens costs 1, an answer of 1,000 tokens 4.
func spending(t *testing.T, perDay float64) flowcontrol.Controller {
	t.Helper()
	own := aimd.DefaultConfig()
	own.Money = aimd.Money{PerDay: perDay, Input: 1000, Output: 4000}
	cfg := flowcontrol.DefaultConfig().Select(aimd.Name, own)
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	c, err := flowcontrol.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.Observe(evening, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "a"}})
	return c
}

func send(c flowcontrol.Controller, now time.Time, inFlight, prompt int) {
	c.Observe(now, &flowcontrol.Started{PromptTokens: prompt,
		Load: flowcontrol.Load{Runner: "a", InFlight: inFlight}})
}

func spent(c flowcontrol.Controller, now time.Time) float64 {
	spent, _ := c.(flowcontrol.Spender).Spent(now)
	return spent
}

func TestMoneyOfADay(t *testing.T) {
	c := spending(t, 10)
	allowed := func(now time.Time, want int, why flowcontrol.Reason) {
		t.Helper()
		a := c.Allowance(now)
		if a.Pool != want || a.Reason != why {
			t.Fatalf("%d lines may be in flight (%s), want %d (%s)", a.Pool, a.Reason, want, why)
		}
		if why == aimd.ReasonMoney &&
			(a.Until.IsZero() || a.Until.After(evening.Add(time.Hour))) {
			t.Fatalf("the next line may start at %v, want midnight at the latest", a.Until)
		}
	}
	allowed(evening, 1, flowcontrol.ReasonPoolLimit)
	send(c, evening, 1, 1000)
	if got := spent(c, evening); got != 1 {
		t.Errorf("a line in flight counts %v, want its prompt's price, 1", got)
	}
	c.Observe(evening, &flowcontrol.Answered{PromptTokens: 1000, OutputTokens: 1000,
		Load: flowcontrol.Load{Runner: "a"}})
	if got := spent(c, evening); got != 5 {
		t.Errorf("an answer costs %v, want 5", got)
	}
	// The next one is expected to cost as much, which is all that is left.
	send(c, evening, 1, 1000)
	allowed(evening, 1, aimd.ReasonMoney)
	c.Observe(evening, &flowcontrol.Shed{Load: flowcontrol.Load{Runner: "a"}})
	if got := spent(c, evening); got != 5 {
		t.Errorf("a refused line costs %v", got-5)
	}
	send(c, evening, 1, 1000)
	c.Observe(evening, &flowcontrol.Evicted{Load: flowcontrol.Load{Runner: "a"}})
	if got := spent(c, evening); got != 10 {
		t.Errorf("after an evicted line %v was spent, want 10", got)
	}
	allowed(evening, 0, aimd.ReasonMoney)
	midnight := evening.Add(time.Hour)
	if got := spent(c, midnight); got != 0 {
		t.Errorf("%v was spent on a day that begins", got)
	}
	if a := c.Allowance(midnight); a.Pool != 1 {
		t.Errorf("%d lines may be in flight on another day", a.Pool)
	}
}

// A restart, or other settings, do not give the day another budget.
func TestMoneyIsCountedOverARestart(t *testing.T) {
	before := spending(t, 10)
	if got := before.(flowcontrol.Learner).Learned(evening); got != nil {
		t.Errorf("nothing was spent, and %s is kept", got)
	}
	send(before, evening, 1, 6000)
	kept := before.(flowcontrol.Learner).Learned(evening)
	for _, c := range []struct {
		after  time.Duration
		perDay float64
		want   float64
		lines  int
	}{{time.Minute, 10, 6, 1}, {time.Minute, 6, 6, 0}, {2 * time.Hour, 6, 0, 1}} {
		now := evening.Add(c.after)
		next := spending(t, c.perDay)
		if err := next.(flowcontrol.Learner).Learn(now, kept, c.after); err != nil {
			t.Fatal(err)
		}
		if got := spent(next, now); got != c.want {
			t.Errorf("after %v %v was spent, want %v", c.after, got, c.want)
		}
		if a := next.Allowance(now); a.Pool != c.lines {
			t.Errorf("after %v with a budget of %v, %d lines may start, want %d", c.after,
				c.perDay, a.Pool, c.lines)
		}
	}
	for _, damaged := range []string{"", "{}", `{"Version":1,"Day":"x","Spent":1}`,
		`{"Version":1,"Day":"2026-03-01","Spent":-1}`} {
		if before.(flowcontrol.Learner).Learn(evening, []byte(damaged), 0) == nil {
			t.Errorf("%q is taken over", damaged)
		}
	}
}

func TestMoneyKeepsTheContract(t *testing.T) {
	own := aimd.DefaultConfig()
	own.Start, own.PerRunner = 7, 7
	own.Money = aimd.Money{PerDay: 1e9, Input: 1, Output: 1}
	cfg := flowcontrol.DefaultConfig().Select(aimd.Name, own)
	flowcontroltest.TestController(t, flowcontroltest.Limits{PerRunner: 7},
		flowcontrol.NeedsOf(aimd.Name), func() flowcontrol.Controller {
			c, err := flowcontrol.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			return c
		})
}
