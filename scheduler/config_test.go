package scheduler_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/scheduler"
)

func TestDefaultConfigIsValid(t *testing.T) {
	if err := scheduler.DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}

func TestConfigFaultsNameTheirField(t *testing.T) {
	for field, spoil := range map[string]func(*scheduler.Config){
		"policy: unknown policy": func(c *scheduler.Config) { c.Policy = "lifo" },
		"urgency: ":              func(c *scheduler.Config) { c.Urgency = "often" },
		"guard_min: ":            func(c *scheduler.Config) { c.GuardMin = -time.Second },
		"assumed_rate: ":         func(c *scheduler.Config) { c.AssumedRate = 0 },
		"quantum: ":              func(c *scheduler.Config) { c.Quantum = math.Inf(1) },
		"tenant_weights.acme: ": func(c *scheduler.Config) {
			c.TenantWeights = map[string]float64{"acme": 0}
		},
		"between_queues: unknown": func(c *scheduler.Config) { c.BetweenQueues = "fair" },
		"queues[0].name: ":        func(c *scheduler.Config) { c.Queues[0].Name = "" },
		"queues[1].name: ":        func(c *scheduler.Config) { c.Queues[1].Name = "first" },
		"queues[0].match: ":       func(c *scheduler.Config) { c.Queues[0].Match = nil },
		"queues[1].match: ":       func(c *scheduler.Config) { c.Queues[1].Name = "default" },
		"queues[0].policy: ": func(c *scheduler.Config) {
			c.Queues[0].Policy = "expression"
		},
		"queues[1].weight: ": func(c *scheduler.Config) { c.Queues[1].Weight = -1 },
		"queues[0].match[1].min_prio": func(c *scheduler.Config) {
			c.Queues[0].Match[1].MinPriority = ptr(4)
		},
		"queues[0].match[1].min_wind": func(c *scheduler.Config) {
			c.Queues[0].Match[1].MinWindow = 2 * time.Hour
		},
	} {
		t.Run(field, func(t *testing.T) {
			cfg := scheduler.DefaultConfig()
			cfg.Queues = []scheduler.QueueConfig{
				{Name: "first", Match: []scheduler.Match{
					{}, {MaxPriority: ptr(3), MaxWindow: time.Hour}}},
				{Name: "second", Match: []scheduler.Match{{}}},
			}
			if err := cfg.Validate(); err != nil {
				t.Fatalf("before: %v", err)
			}
			spoil(&cfg)
			if _, err := scheduler.NewQueue(cfg); err == nil || !strings.Contains(
				err.Error(), field) {
				t.Errorf("got %v, want a fault with %q", err, field)
			}
		})
	}
}

func TestConfigReportsAllFaultsAtOnce(t *testing.T) {
	cfg := scheduler.DefaultConfig()
	cfg.Policy, cfg.Quantum, cfg.GuardMin = "x", 0, -1
	if lines := strings.Split(cfg.Validate().Error(), "\n"); len(lines) != 3 {
		t.Errorf("got %d faults, want 3: %q", len(lines), lines)
	}
}

func TestConfigReadsAsWritten(t *testing.T) {
	cfg := scheduler.DefaultConfig()
	text := `
policy: edf
tuning: {guard_min: 5m}
tenant_weights: {acme: 3}
between_queues: weighted
queues:
  - name: gold
    weight: 4
    policy: expression
    expression: deadline_s - 60 * priority
    match:
      - {tenants: ["acme*"], min_priority: 0}
      - {models: ["*-70b"], max_window: 1h}
`
	if err := yaml.Unmarshal([]byte(text), &cfg); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	gold := cfg.Queues[0]
	if cfg.GuardMin != 5*time.Minute || cfg.Quantum != 200_000 || *gold.Match[0].MinPriority != 0 ||
		gold.Match[1].MaxWindow != time.Hour {
		t.Errorf("read as %+v", cfg)
	}
}
