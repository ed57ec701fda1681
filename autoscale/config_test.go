package autoscale

import (
	"strings"
	"testing"
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
		{"down.tuning.drain: ", func(c *Config) { c.Down.Drain = -1 }},
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
	cfg.Separate.Within, cfg.Down.Hold = 0, -1
	if err := cfg.Validate(); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("two faults: %v", err)
	}
}
