package schedule_test

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/flowcontroltest"
	"github.com/tidefill/tidefill/flowcontrol/schedule"
)

// pool returns a pool under the policy, with its defaults changed.
func pool(t *testing.T, change func(*schedule.Config)) *flowcontroltest.Pool {
	t.Helper()
	own := schedule.DefaultConfig()
	change(&own)
	return flowcontroltest.NewPool(t, flowcontrol.DefaultConfig().Select(schedule.Name, own))
}

func TestKeepsItsTimes(t *testing.T) {
	p := pool(t, func(c *schedule.Config) {
		c.Rows = []schedule.Row{{At: 6 * time.Hour, Lines: 3, PromptTokens: 900},
			{At: 20 * time.Hour, Lines: 40}}
	})
	midnight := flowcontroltest.Noon.Add(-12 * time.Hour)
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

func TestWithoutRepetitionStays(t *testing.T) {
	rows := func(c *schedule.Config) {
		*c = schedule.Config{Begin: flowcontroltest.Noon, Rows: []schedule.Row{
			{At: time.Hour, Lines: 3}, {At: 2 * time.Hour, Lines: 4}}}
	}
	p := pool(t, rows)
	p.Join("a")
	for at, want := range map[time.Duration]int{-time.Hour: 0, 0: 0, time.Hour: 3,
		90 * time.Minute: 3, 2 * time.Hour: 4, 1000 * time.Hour: 4} {
		fresh := pool(t, rows)
		fresh.Now = flowcontroltest.Noon.Add(at)
		fresh.Join("a")
		if got := fresh.Of("a").Lines; got != want {
			t.Errorf("at %v: %d lines, want %d", at, got, want)
		}
	}
	p.Now = flowcontroltest.Noon.Add(100 * time.Hour)
	if got := p.Of("a").Lines; got != 4 {
		t.Errorf("in the end %d lines, want 4", got)
	}
}

func TestRowsLeaveRunnersFree(t *testing.T) {
	for _, share := range []float64{0, 0.9} {
		p := pool(t, func(c *schedule.Config) {
			c.Rows = []schedule.Row{{Lines: 4, Runners: 2, TargetShare: share}}
		})
		p.Join("c", "a", "b")
		if a, b, c := p.Of("a").Lines, p.Of("b").Lines, p.Of("c").Lines; a == 0 || b == 0 ||
			c != 0 {
			t.Errorf("with target share %v: %d, %d and %d lines, want some on the first two alone",
				share, a, b, c)
		}
	}
}

func TestConfigFaultsNameTheirField(t *testing.T) {
	rows := func(rows ...schedule.Row) func(*schedule.Config) {
		return func(c *schedule.Config) { c.Rows = rows }
	}
	flowcontroltest.TestFaults(t, schedule.DefaultConfig(),
		map[string]func(*schedule.Config){
			"begin: ": func(c *schedule.Config) { c.Begin = time.Time{} },
			"every: ": func(c *schedule.Config) { c.Every = -1 },
			"rows: row 2 ": rows(schedule.Row{At: time.Hour},
				schedule.Row{At: time.Hour}),
			"rows: row 1 is at 24h":        rows(schedule.Row{At: 24 * time.Hour}),
			"rows: row 1 has lines":        rows(schedule.Row{Lines: -1}),
			"rows: row 1 has lines 0, r":   rows(schedule.Row{Runners: -1}),
			"rows: row 1 has target_share": rows(schedule.Row{TargetShare: 3}),
		})
}
