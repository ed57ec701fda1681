package flowcontrol_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/flowcontroltest"
)

// schedule returns a pool under the policy, with its defaults changed.
func schedule(t *testing.T, change func(*flowcontrol.ScheduleConfig)) *flowcontroltest.Pool {
	t.Helper()
	own := flowcontrol.DefaultSchedule()
	change(&own)
	return flowcontroltest.NewPool(t, flowcontrol.DefaultConfig().Select("schedule", own))
}

func TestScheduleKeepsItsTimes(t *testing.T) {
	p := schedule(t, func(c *flowcontrol.ScheduleConfig) {
		c.Rows = []flowcontrol.ScheduleRow{{At: 6 * time.Hour, Lines: 3, Prompt: 900},
			{At: 20 * time.Hour, Lines: 40}}
	})
	midnight := noon.Add(-12 * time.Hour)
	p.Now = midnight
	p.Join("a", "b")
	for _, test := range []struct {
		at            time.Duration
		lines, prompt int
		until         time.Duration
	}{
		{0, 0, flowcontrol.NoLimit, 6 * time.Hour},
		{6*time.Hour - 1, 0, flowcontrol.NoLimit, 6 * time.Hour},
		{6 * time.Hour, 3, 900, 20 * time.Hour},
		{19 * time.Hour, 3, 900, 20 * time.Hour},
		{20 * time.Hour, 40, flowcontrol.NoLimit, 24 * time.Hour},
		{24 * time.Hour, 0, flowcontrol.NoLimit, 30 * time.Hour},
		{30 * time.Hour, 3, 900, 44 * time.Hour},
		{103*time.Hour + time.Minute, 3, 900, 116 * time.Hour},
	} {
		p.Now = midnight.Add(test.at)
		a := p.Allowance(p.Now)
		for _, r := range a.Runners {
			if r.Lines != test.lines || r.Prompt != test.prompt {
				t.Errorf("at %v: %+v, want %d lines and %d prompt tokens", test.at, r, test.lines,
					test.prompt)
			}
		}
		if a.Until.After(midnight.Add(test.until)) {
			t.Errorf("at %v: until %v, want %v at the latest", test.at, a.Until,
				midnight.Add(test.until))
		}
	}
}

func TestScheduleWithoutRepetitionStays(t *testing.T) {
	rows := func(c *flowcontrol.ScheduleConfig) {
		*c = flowcontrol.ScheduleConfig{Begin: noon, Rows: []flowcontrol.ScheduleRow{
			{At: time.Hour, Lines: 3}, {At: 2 * time.Hour, Lines: 4}}}
	}
	p := schedule(t, rows)
	p.Join("a")
	for at, want := range map[time.Duration]int{-time.Hour: 0, 0: 0, time.Hour: 3,
		90 * time.Minute: 3, 2 * time.Hour: 4, 1000 * time.Hour: 4} {
		fresh := schedule(t, rows)
		fresh.Now = noon.Add(at)
		fresh.Join("a")
		if got := fresh.Of("a").Lines; got != want {
			t.Errorf("at %v: %d lines, want %d", at, got, want)
		}
	}
	p.Now = noon.Add(100 * time.Hour)
	if got := p.Of("a").Lines; got != 4 {
		t.Errorf("in the end %d lines, want 4", got)
	}
}

// chat is an engine and its interactive load, shown as metrics.
func chat(running, kv, prompts float64) func(*flowcontrol.Reading) {
	return func(r *flowcontrol.Reading) {
		r.Running, r.Waiting, r.KVUsed, r.KVTokens, r.PromptTokens, r.CachedTokens,
			r.OutputTokens = running, 0, kv, 440_000, prompts, 0, prompts
	}
}

func a100() flowcontrol.Engine {
	return flowcontrol.Engine{
		CostModel: costmodel.Model{C0: 33, C1: 0.112, C2: 0.0714, N0: 112, KV: 5.25e-5, P1: 0.0052,
			P2: 5.14e-6},
		KVTokens: 440_000, MaxSeqs: 256, MaxBatchedTokens: 512,
	}
}

func TestModelGrantsWhatTheLawLeaves(t *testing.T) {
	cfg := flowcontrol.DefaultConfig()
	cfg.Policy, cfg.Engine = "model", a100()
	p := flowcontroltest.NewPool(t, cfg)
	p.Join("a")
	if got := p.Of("a"); got.Lines != 2 || got.Reason != flowcontrol.ReasonLearning {
		t.Errorf("before any metric: %+v, want 2, learning", got)
	}
	settle := func(running, kv, rate float64) int {
		for range 60 {
			p.Now = p.Now.Add(time.Second)
			p.Read("a", chat(running, kv, rate*p.Now.Sub(noon).Seconds()))
		}
		return p.Of("a").Lines
	}
	idle := settle(0, 0, 0)
	chatting := settle(10, 0.03, 300)
	busy := settle(40, 0.1, 2000)
	if !(idle > chatting && chatting > busy && busy >= 0) || idle < 50 {
		t.Errorf("%d lines beside nobody, %d beside a few, %d beside many: want fewer and fewer",
			idle, chatting, busy)
	}
	p.Now = p.Now.Add(10 * time.Minute)
	if got := p.Of("a"); got.Lines > 2 {
		t.Errorf("long after the last metric: %+v, want no more than at first", got)
	}
}

func TestModelNeedsALaw(t *testing.T) {
	cfg := flowcontrol.DefaultConfig()
	cfg.Policy = "model"
	if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(),
		"engine.cost_model: is unknown") {
		t.Errorf("got %v, want a word about the law", err)
	}
}

func TestModelFaultsNameTheirField(t *testing.T) {
	flowcontroltest.TestFaults(t, flowcontrol.DefaultModel(),
		map[string]func(*flowcontrol.ModelConfig){
			"theta: ":  func(c *flowcontrol.ModelConfig) { c.Theta = 0 },
			"prompt: ": func(c *flowcontrol.ModelConfig) { c.Prompt = 0 },
		})
}

func TestScheduleFaultsNameTheirField(t *testing.T) {
	rows := func(rows ...flowcontrol.ScheduleRow) func(*flowcontrol.ScheduleConfig) {
		return func(c *flowcontrol.ScheduleConfig) { c.Rows = rows }
	}
	flowcontroltest.TestFaults(t, flowcontrol.DefaultSchedule(),
		map[string]func(*flowcontrol.ScheduleConfig){
			"begin: ": func(c *flowcontrol.ScheduleConfig) { c.Begin = time.Time{} },
			"every: ": func(c *flowcontrol.ScheduleConfig) { c.Every = -1 },
			"rows: row 2 ": rows(flowcontrol.ScheduleRow{At: time.Hour},
				flowcontrol.ScheduleRow{At: time.Hour}),
			"rows: row 1 is at 24h": rows(flowcontrol.ScheduleRow{At: 24 * time.Hour}),
			"rows: row 1 has lines": rows(flowcontrol.ScheduleRow{Lines: -1}),
			"rows: row 1 has theta": rows(flowcontrol.ScheduleRow{Theta: 3}),
		})
}
