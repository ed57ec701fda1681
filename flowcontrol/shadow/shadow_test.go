package shadow_test

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/aimd"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/flowcontrol/shadow"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// shadowed returns a configuration whose shadow has a policy with these settings.
func shadowed(policy string, own flowcontrol.PolicyConfig) flowcontrol.Config {
	cfg := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 4})
	other := flowcontrol.DefaultConfig().With(policy, own)
	cfg.Shadow = flowcontrol.Shadow{Policy: policy, Settings: other.Settings}
	return cfg
}

func newShadow(t *testing.T, cfg flowcontrol.Config) *shadow.Shadow {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	s, err := shadow.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func expect(t *testing.T, s *shadow.Shadow, now time.Time, want shadow.Allowance) {
	t.Helper()
	if got, ok := s.Allowance(now); !ok || got != want {
		t.Errorf("got %+v, %v, want %+v", got, ok, want)
	}
}

func TestShadowHasSettingsOfItsOwn(t *testing.T) {
	s := newShadow(t, shadowed(fixed.Name, fixed.Config{PerRunner: 9, PerPool: 11}))
	expect(t, s, noon, shadow.Allowance{Policy: fixed.Name, Reason: flowcontrol.ReasonNoRunner})
	for _, r := range []string{"a", "b"} {
		s.Observe(noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: r}})
	}
	expect(t, s, noon, shadow.Allowance{Policy: fixed.Name, Lines: 11,
		Reason: flowcontrol.ReasonPoolLimit})
}

// A pause ends by time alone.
func TestAllowanceFollowsTime(t *testing.T) {
	s := newShadow(t, shadowed(fixed.Name, fixed.Config{PerRunner: 9}))
	s.Observe(noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "a"}})
	s.Observe(noon, &flowcontrol.Shed{Load: flowcontrol.Load{Runner: "a"}, RetryAfter: time.Minute})
	expect(t, s, noon.Add(59*time.Second), shadow.Allowance{Policy: fixed.Name,
		Reason: flowcontrol.ReasonRetryAfter})
	expect(t, s, noon.Add(time.Minute), shadow.Allowance{Policy: fixed.Name, Lines: 9,
		Reason: flowcontrol.ReasonRunnerLimit})
}

// A policy that learns does so from the lines that the pool's policy starts.
func TestShadowLearnsFromTheLinesOfThePool(t *testing.T) {
	own := aimd.DefaultConfig()
	own.Start = 3
	s := newShadow(t, shadowed(aimd.Name, own))
	now := noon
	s.Observe(now, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "a"}})
	expect(t, s, now, shadow.Allowance{Policy: aimd.Name, Lines: 3,
		Reason: flowcontrol.ReasonGrowing})
	for range 3 {
		now = now.Add(time.Second)
		s.Observe(now, &flowcontrol.Answered{Load: flowcontrol.Load{Runner: "a", InFlight: 3}})
	}
	expect(t, s, now, shadow.Allowance{Policy: aimd.Name, Lines: 4,
		Reason: flowcontrol.ReasonGrowing})
}

func TestNoShadow(t *testing.T) {
	s := newShadow(t, flowcontrol.DefaultConfig().Select(fixed.Name, fixed.DefaultConfig()))
	if s != nil {
		t.Errorf("got %+v without a shadow in the configuration", s)
	}
	s.Observe(noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "a"}})
	if a, ok := s.Allowance(noon); ok {
		t.Errorf("no shadow allows %+v", a)
	}
}
