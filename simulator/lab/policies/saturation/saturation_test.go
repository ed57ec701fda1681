package saturation_test

import (
	"math"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/flowcontroltest"
	"github.com/tidefill/tidefill/simulator/lab/policies/internal/gate"
	"github.com/tidefill/tidefill/simulator/lab/policies/saturation"
)

// pool returns a pool under the policy, with its defaults changed.
func pool(t *testing.T, change func(*saturation.Config)) *flowcontroltest.Pool {
	t.Helper()
	own := saturation.DefaultConfig()
	if change != nil {
		change(&own)
	}
	return flowcontroltest.NewPool(t, flowcontrol.DefaultConfig().Select(saturation.Name, own))
}

func waiting(requests float64) func(*flowcontrol.Reading) {
	return func(r *flowcontrol.Reading) { r.Waiting = requests }
}

func TestOldReadingsAreNotUsed(t *testing.T) {
	p := pool(t, func(c *saturation.Config) { c.MaxAge, c.Fallback = time.Minute, 1 })
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

func TestLoadIsTheMeanOfTheRunnersWorseSide(t *testing.T) {
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
		p := pool(t, nil)
		p.Join("a", "b")
		for runner, shown := range map[string][2]float64{"a": test.a, "b": test.b} {
			p.Read(runner, func(r *flowcontrol.Reading) {
				r.Waiting, r.KVUsed = shown[0], shown[1]
			})
		}
		a := p.Allowance(p.Now)
		if open := a.Runners[0].Lines > 0; open != test.open {
			t.Errorf("%v and %v: %+v, open should be %v", test.a, test.b, a, test.open)
		}
		if test.open && a.Pool != 64 {
			t.Errorf("%v and %v: %+v, want the 64 workers", test.a, test.b, a)
		}
	}
}

// A runner shows its KV cache on its metrics page alone.
func TestCapabilitiesDoNotReplaceMetrics(t *testing.T) {
	p := pool(t, func(c *saturation.Config) { c.MaxAge = time.Minute })
	p.Join("a")
	capabilities := func() {
		r := flowcontrol.NoReading(flowcontrol.Capabilities, p.Now)
		r.Waiting = 0
		p.Observe(p.Now, &flowcontrol.Read{Runner: "a", Reading: &r})
	}
	full := func(r *flowcontrol.Reading) { r.KVUsed = 0.95 }
	capabilities()
	p.Read("a", full)
	for range 11 {
		p.Now = p.Now.Add(5 * time.Second)
		if capabilities(); p.Of("a").Lines != 0 {
			t.Fatalf("%v, want nothing while the KV cache is full", p.Of("a"))
		}
	}
	p.Now = p.Now.Add(5 * time.Second) // the metrics are too old
	if capabilities(); p.Of("a").Lines == 0 {
		t.Errorf("%v, want lines by the capabilities of a runner without metrics", p.Of("a"))
	}
	if p.Read("a", full); p.Of("a").Lines != 0 {
		t.Errorf("%v, want nothing by the metrics that are back", p.Of("a"))
	}
}

// Two sources of a runner's metrics may answer in another order than they sampled.
func TestOlderReadingsDoNotReplaceNewerOnes(t *testing.T) {
	p := pool(t, nil)
	p.Join("a")
	p.Read("a", waiting(9))
	p.Read("a", func(r *flowcontrol.Reading) {
		r.Waiting, r.Sampled = 0, p.Now.Add(-time.Second)
	})
	if p.Of("a").Lines != 0 {
		t.Errorf("%v, want nothing by the newer reading", p.Of("a"))
	}
	// The clock of a source was an hour ahead.
	p.Read("a", func(r *flowcontrol.Reading) { r.Waiting, r.Sampled = 9, p.Now.Add(time.Hour) })
	p.Now = p.Now.Add(time.Second)
	if p.Read("a", waiting(0)); p.Of("a").Lines == 0 {
		t.Errorf("%v, want lines by the last reading", p.Of("a"))
	}
}

func TestConfigFaultsNameTheirField(t *testing.T) {
	flowcontroltest.TestFaults(t, saturation.DefaultConfig(), map[string]func(*saturation.Config){
		"threshold: ":   func(c *saturation.Config) { c.Threshold = 0 },
		"queue_depth: ": func(c *saturation.Config) { c.QueueDepth = 0 },
		"kv_used: ":     func(c *saturation.Config) { c.KVUsed = 1.1 },
		"fallback: ":    func(c *saturation.Config) { c.Fallback = math.NaN() },
		"per_runner: ":  func(c *saturation.Config) { c.PerRunner = 0 },
		"per_pool: ":    func(c *saturation.Config) { c.PerPool = -1 },
		"max_age: ":     func(c *saturation.Config) { c.MaxAge = -1 },
	})
}
