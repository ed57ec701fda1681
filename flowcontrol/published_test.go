package flowcontrol_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// read shows a runner's metrics as they are now.
func (p *pool) read(runner string, show func(*flowcontrol.Reading)) bool {
	r := flowcontrol.NoReading(flowcontrol.Metrics, p.now)
	show(&r)
	return p.Observe(p.now, flowcontrol.Observation{Kind: flowcontrol.Read, Runner: runner,
		Reading: &r})
}

func waiting(requests float64) func(*flowcontrol.Reading) {
	return func(r *flowcontrol.Reading) { r.Waiting = requests }
}

func policy(t *testing.T, name string, change func(*flowcontrol.Config)) *pool {
	t.Helper()
	cfg := flowcontrol.DefaultConfig()
	cfg.Policy = name
	if change != nil {
		change(&cfg)
	}
	return &pool{newController(t, cfg), noon}
}

func TestNoneStartsNothing(t *testing.T) {
	p := policy(t, "none", nil)
	p.join("a")
	if a := p.Allowance(p.now); a.Runners[0].Lines != 0 || p.Name() != "none" {
		t.Errorf("%s grants %+v", p.Name(), a)
	}
}

func TestUnlimitedStartsMoreThanAnyEngineRuns(t *testing.T) {
	p := policy(t, "unlimited", nil)
	p.join("a")
	if a := p.Allowance(p.now); a.Runners[0].Lines < 1024 || a.Pool != flowcontrol.NoLimit ||
		p.Name() != "unlimited" {
		t.Errorf("%s grants %+v", p.Name(), a)
	}
}

// The example of llm-d-async's documentation: five servers that hold 10 requests, F = 0.3 and B =
// 0.1 make 30.
func TestBudgetOfThePublishedExample(t *testing.T) {
	p := policy(t, "budget", func(c *flowcontrol.Config) {
		c.Budget.MaxConcurrency, c.Budget.Baseline = 10, 0.1
	})
	runners := []string{"a", "b", "c", "d", "e"}
	p.join(runners...)
	if a := p.Allowance(p.now); a.Runners[0].Lines != 0 || a.Reason != flowcontrol.ReasonNoMetrics {
		t.Errorf("before any metric: %+v, want nothing", a)
	}
	for i, r := range runners {
		p.read(r, waiting([]float64{0, 2, 3, 4, 6}[i]))
	}
	a := p.Allowance(p.now)
	if a.Pool != 30 {
		t.Errorf("got %+v, want 30 in the pool", a)
	}
	for _, r := range a.Runners {
		if r.Lines != 6 {
			t.Errorf("got %+v, want 6 of the 30", r)
		}
	}
}

func TestBudgetClosesAtTheBaseline(t *testing.T) {
	p := policy(t, "budget", func(c *flowcontrol.Config) {
		c.Budget.MaxConcurrency, c.Budget.Load = 20, flowcontrol.RunningLoad
	})
	p.join("a")
	for running, want := range map[float64]int{0: 19, 10: 9, 18: 1, 18.9: 1, 19: 0, 40: 0} {
		p.read("a", func(r *flowcontrol.Reading) { r.Running = running })
		if got := p.of("a").Lines; got != want {
			t.Errorf("%v running: %d lines, want %d", running, got, want)
		}
	}
}

func TestBudgetTakesARefusalForAFullPoolUntilItIsSeenAgain(t *testing.T) {
	p := policy(t, "budget", nil)
	p.join("a", "b")
	p.read("a", waiting(0))
	p.shed("a")
	if a := p.Allowance(p.now); a.Runners[0].Lines != 0 || a.Runners[1].Lines != 0 ||
		a.Reason != flowcontrol.ReasonLoad {
		t.Errorf("after a refusal: %+v, want nothing anywhere", a)
	}
	p.read("b", waiting(0))
	if a := p.Allowance(p.now); a.Runners[0].Lines == 0 || a.Runners[1].Lines == 0 {
		t.Errorf("after a new reading: %+v, want lines again", a)
	}
}

func TestGatesForgetWhatIsOld(t *testing.T) {
	for _, name := range []string{"budget", "saturation"} {
		p := policy(t, name, func(c *flowcontrol.Config) {
			c.Budget.Stale, c.Saturation.Stale, c.Saturation.Fallback = time.Minute, time.Minute, 1
		})
		p.join("a")
		p.read("a", waiting(0))
		fresh := p.Allowance(p.now)
		if want := p.now.Add(time.Minute); fresh.Runners[0].Lines == 0 || !fresh.Until.Equal(want) {
			t.Errorf("%s: %+v, want lines until %v", name, fresh, want)
		}
		p.now = fresh.Until
		if a := p.Allowance(p.now); a.Runners[0].Lines != 0 ||
			a.Reason != flowcontrol.ReasonNoMetrics || !a.Until.IsZero() {
			t.Errorf("%s, a minute later: %+v, want nothing, no_metrics", name, a)
		}
	}
}

func TestSaturationIsTheMeanOfTheRunnersWorseSide(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct {
		a, b [2]float64 // waiting, KV use
		open bool
	}{
		{[2]float64{0, 0}, [2]float64{0, 0}, true},
		{[2]float64{3.9, 0}, [2]float64{0, 0.63}, true},
		{[2]float64{4, 0.1}, [2]float64{1, 0.64}, false},
		{[2]float64{7.9, 0}, [2]float64{0, 0}, true}, // one of two may be beyond full
		{[2]float64{nan, 0.64}, [2]float64{4, nan}, false},
		{[2]float64{nan, nan}, [2]float64{4, 0}, false}, // what shows nothing counts for nothing
		{[2]float64{nan, nan}, [2]float64{nan, nan}, true},
	} {
		p := policy(t, "saturation", nil)
		p.join("a", "b")
		for runner, shown := range map[string][2]float64{"a": test.a, "b": test.b} {
			p.read(runner, func(r *flowcontrol.Reading) {
				r.Waiting, r.KVUsed = shown[0], shown[1]
			})
		}
		a := p.Allowance(p.now)
		if open := a.Runners[0].Lines > 0; open != test.open {
			t.Errorf("%v and %v: %+v, open should be %v", test.a, test.b, a, test.open)
		}
		if test.open && a.Pool != 64 {
			t.Errorf("%v and %v: %+v, want the 64 workers", test.a, test.b, a)
		}
	}
}

// latencies answers as many lines as a window takes, all of the same latency, with the runner as
// full as it may be.
func (p *pool) latencies(runner string, latency time.Duration) int {
	p.now = p.now.Add(time.Second)
	for range 10 {
		p.Observe(p.now, flowcontrol.Observation{Kind: flowcontrol.Answered, Runner: runner,
			InFlight: p.of(runner).Lines - 1, Latency: latency})
	}
	return p.of(runner).Lines
}

func TestGradientGrowsWhileLatencyStays(t *testing.T) {
	p := policy(t, "gradient", nil)
	p.join("a")
	// 20 + 0.2 * 4 with each window: 20.8, 21.6, 22.4 and so on.
	for i, want := range []int{20, 21, 22, 23, 24} {
		if got := p.latencies("a", 5*time.Second); got != want {
			t.Errorf("window %d: %d lines, want %d", i+1, got, want)
		}
	}
	for range 400 {
		p.latencies("a", 5*time.Second)
	}
	if got := p.of("a"); got.Lines != 200 || got.Reason != flowcontrol.ReasonRunnerLimit {
		t.Errorf("in the end %+v, want 200", got)
	}
}

func TestGradientFallsByHalfASmoothedStepAtMost(t *testing.T) {
	p := policy(t, "gradient", func(c *flowcontrol.Config) { c.Gradient.Initial = 100 })
	p.join("a")
	for range 20 {
		p.latencies("a", time.Second)
	}
	before := p.of("a").Lines // 116
	// Tolerance 1.5 covers half as much again; ten times as much is taken for twice: 0.8 * 116 +
	// 0.2 * (58 + 4).
	if got := p.latencies("a", 1400*time.Millisecond); got < before {
		t.Errorf("within the tolerance it falls from %d to %d", before, got)
	}
	before = p.of("a").Lines
	if got, want := p.latencies("a", 10*time.Second), int(float64(before)*0.9+0.8); got < want ||
		got > want+1 {
		t.Errorf("fell from %d to %d, want %d", before, got, want)
	}
	for range 100 {
		p.latencies("a", time.Hour)
		p.latencies("a", time.Millisecond)
	}
	if got := p.of("a").Lines; got < 20 {
		t.Errorf("%d lines, fewer than the least", got)
	}
}

func TestGradientLearnsNothingFromAnIdleRunner(t *testing.T) {
	p := policy(t, "gradient", nil)
	p.join("a")
	for range 500 {
		p.now = p.now.Add(200 * time.Millisecond)
		p.Observe(p.now, flowcontrol.Observation{Kind: flowcontrol.Answered,
			Runner: "a", InFlight: 3, Latency: time.Second})
	}
	if got := p.of("a").Lines; got != 20 {
		t.Errorf("%d lines, want the first 20", got)
	}
}

func TestPublishedPoliciesNameTheirFaults(t *testing.T) {
	for field, spoil := range map[string]func(*flowcontrol.Config){
		"budget.max_concurrency: ": func(c *flowcontrol.Config) { c.Budget.MaxConcurrency = 0 },
		"budget.baseline: ":        func(c *flowcontrol.Config) { c.Budget.Baseline = 1 },
		"budget.load: ":            func(c *flowcontrol.Config) { c.Budget.Load = "gpu" },
		"budget.fallback: ":        func(c *flowcontrol.Config) { c.Budget.Fallback = 2 },
		"budget.per_pool: ":        func(c *flowcontrol.Config) { c.Budget.PerPool = -1 },
		"budget.stale: ":           func(c *flowcontrol.Config) { c.Budget.Stale = 0 },
		"saturation.threshold: ":   func(c *flowcontrol.Config) { c.Saturation.Threshold = 0 },
		"saturation.queue_depth: ": func(c *flowcontrol.Config) { c.Saturation.QueueDepth = 0 },
		"saturation.kv_used: ":     func(c *flowcontrol.Config) { c.Saturation.KVUsed = 1.1 },
		"saturation.fallback: ": func(c *flowcontrol.Config) {
			c.Saturation.Fallback = math.NaN()
		},
		"saturation.per_runner: ": func(c *flowcontrol.Config) { c.Saturation.PerRunner = 0 },
		"saturation.per_pool: ":   func(c *flowcontrol.Config) { c.Saturation.PerPool = -1 },
		"saturation.stale: ":      func(c *flowcontrol.Config) { c.Saturation.Stale = -1 },
		"gradient.min: ":          func(c *flowcontrol.Config) { c.Gradient.Min = 0 },
		"gradient.initial: ":      func(c *flowcontrol.Config) { c.Gradient.Initial = 19 },
		"gradient.max: ":          func(c *flowcontrol.Config) { c.Gradient.Max = 19 },
		"gradient.per_pool: ":     func(c *flowcontrol.Config) { c.Gradient.PerPool = -1 },
		"gradient.tolerance: ":    func(c *flowcontrol.Config) { c.Gradient.Tolerance = 0.9 },
		"gradient.queue: ":        func(c *flowcontrol.Config) { c.Gradient.Queue = -1 },
		"gradient.smoothing: ":    func(c *flowcontrol.Config) { c.Gradient.Smoothing = 0 },
		"gradient.long_window: ":  func(c *flowcontrol.Config) { c.Gradient.LongWindow = 0 },
		"gradient.window: ":       func(c *flowcontrol.Config) { c.Gradient.Window = 0 },
		"gradient.samples: ":      func(c *flowcontrol.Config) { c.Gradient.Samples = 0 },
	} {
		cfg := flowcontrol.DefaultConfig()
		spoil(&cfg)
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("got %v, want a fault of %s", err, field)
		}
	}
}
