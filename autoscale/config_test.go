package autoscale

import (
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
	tests := []struct {
		path   string
		change func(*Config)
	}{
		{
			`policy: unknown policy "slak": did you mean "slack"? ` +
				"there are interactive, queue_length, request_rate, separate, slack, static",
			func(c *Config) {
				c.Policy = "slak"
			}},
		{"step: ", func(c *Config) { c.Step = 0 }},
		{"tuning.forecast.smooth: ", func(c *Config) { c.Forecast.Smooth = 0 }},
		{"tuning.forecast.learn: ", func(c *Config) { c.Forecast.Learn = 2 }},
		{"tuning.forecast.burst: ", func(c *Config) { c.Forecast.Burst = 0.5 }},
		{"tuning.harvest.share: ", func(c *Config) { c.Harvest.ShareLeast = 2 }},
		{"tuning.harvest.busy: ", func(c *Config) { c.Harvest.Busy = -1 }},
		{"start.tuning.starts: ", func(c *Config) { c.Start.Starts = 0 }},
		{"deadline.tuning.uncertainty: ", func(c *Config) { c.Deadline.Uncertainty = -1 }},
		{"deadline.tuning.horizon: ", func(c *Config) { c.Deadline.Horizon = time.Minute }},
		{"down.tuning.share: ", func(c *Config) { c.Down.Share = 0 }},
		{"down.tuning.every: ", func(c *Config) { c.Down.Every = -1 }},
		{"queue_length.lines_per_replica: ", func(c *Config) { c.QueueLength.LinesPerReplica = 0 }},
		{"separate.within: ", func(c *Config) { c.Separate.Within = 0 }},
	}
	for _, test := range tests {
		cfg := DefaultConfig()
		test.change(&cfg)
		err := cfg.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), test.path) {
			t.Errorf("%q: %v", test.path, err)
		}
		if _, err := New(cfg); err == nil {
			t.Errorf("%q: New returns no error", test.path)
		}
	}
	cfg := DefaultConfig()
	cfg.Step, cfg.Down.Share = 0, 0
	if err := cfg.Validate(); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("two faults: %v", err)
	}
}
