package gradient_test

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/flowcontroltest"
	"github.com/tidefill/tidefill/simulator/lab/policies/gradient"
)

// pool returns a pool under the policy, with its defaults changed.
func pool(t *testing.T, change func(*gradient.Config)) *flowcontroltest.Pool {
	t.Helper()
	own := gradient.DefaultConfig()
	if change != nil {
		change(&own)
	}
	return flowcontroltest.NewPool(t, flowcontrol.DefaultConfig().Select(gradient.Name, own))
}

// latencies answers as many lines as a window takes, all of the same latency, with the runner as
// full as it may be.
func latencies(p *flowcontroltest.Pool, runner string, latency time.Duration) int {
	p.Now = p.Now.Add(time.Second)
	for range 10 {
		p.Observe(p.Now, &flowcontrol.Answered{Load: flowcontrol.Load{Runner: runner,
			InFlight: p.Of(runner).Lines - 1}, Latency: latency})
	}
	return p.Of(runner).Lines
}

func TestGrowsWhileLatencyStays(t *testing.T) {
	p := pool(t, nil)
	p.Join("a")
	// 20 + 0.2 * 4 with each window: 20.8, 21.6, 22.4 and so on.
	for i, want := range []int{20, 21, 22, 23, 24} {
		if got := latencies(p, "a", 5*time.Second); got != want {
			t.Errorf("window %d: %d lines, want %d", i+1, got, want)
		}
	}
	for range 400 {
		latencies(p, "a", 5*time.Second)
	}
	if got := p.Of("a"); got.Lines != 200 || got.Reason != flowcontrol.ReasonRunnerLimit {
		t.Errorf("in the end %+v, want 200", got)
	}
}

func TestFallsByHalfASmoothedStepAtMost(t *testing.T) {
	p := pool(t, func(c *gradient.Config) { c.Initial = 100 })
	p.Join("a")
	for range 20 {
		latencies(p, "a", time.Second)
	}
	before := p.Of("a").Lines // 116
	// Tolerance 1.5 covers half as much again; ten times as much counts as twice: 0.8 * 116 +
	// 0.2 * (58 + 4).
	if got := latencies(p, "a", 1400*time.Millisecond); got < before {
		t.Errorf("within the tolerance it falls from %d to %d", before, got)
	}
	before = p.Of("a").Lines
	if got, want := latencies(p, "a", 10*time.Second), int(float64(before)*0.9+0.8); got < want ||
		got > want+1 {
		t.Errorf("fell from %d to %d, want %d", before, got, want)
	}
	for range 100 {
		latencies(p, "a", time.Hour)
		latencies(p, "a", time.Millisecond)
	}
	if got := p.Of("a").Lines; got < 20 {
		t.Errorf("%d lines, fewer than the least", got)
	}
}

func TestLearnsNothingFromAnIdleRunner(t *testing.T) {
	p := pool(t, nil)
	p.Join("a")
	for range 500 {
		p.Now = p.Now.Add(200 * time.Millisecond)
		p.Observe(p.Now, &flowcontrol.Answered{Load: flowcontrol.Load{Runner: "a", InFlight: 3},
			Latency: time.Second})
	}
	if got := p.Of("a").Lines; got != 20 {
		t.Errorf("%d lines, want the first 20", got)
	}
}

func TestConfigFaultsNameTheirField(t *testing.T) {
	flowcontroltest.TestFaults(t, gradient.DefaultConfig(), map[string]func(*gradient.Config){
		"min: ":                func(c *gradient.Config) { c.Min = 0 },
		"initial: ":            func(c *gradient.Config) { c.Initial = 19 },
		"max: ":                func(c *gradient.Config) { c.Max = 19 },
		"per_pool: ":           func(c *gradient.Config) { c.PerPool = -1 },
		"tolerance: ":          func(c *gradient.Config) { c.Tolerance = 0.9 },
		"tuning.queue: ":       func(c *gradient.Config) { c.Tuning.Queue = -1 },
		"tuning.smoothing: ":   func(c *gradient.Config) { c.Tuning.Smoothing = 0 },
		"tuning.long_window: ": func(c *gradient.Config) { c.Tuning.LongWindow = 0 },
		"tuning.window: ":      func(c *gradient.Config) { c.Tuning.Window = 0 },
		"tuning.samples: ":     func(c *gradient.Config) { c.Tuning.Samples = 0 },
	})
}
