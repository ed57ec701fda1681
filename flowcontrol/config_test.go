package flowcontrol_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	_ "github.com/tidefill/tidefill/flowcontrol/builtin"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
)

func TestUnknownPolicyNamesTheNearest(t *testing.T) {
	cfg := flowcontrol.DefaultConfig()
	cfg.Policy = "fix"
	_, err := flowcontrol.New(cfg)
	if err == nil || !strings.Contains(err.Error(),
		`did you mean "fixed"? there are aimd, fixed`) {
		t.Errorf("got %v, want the nearest and all names", err)
	}
}

func TestConfigFaultsNameTheirField(t *testing.T) {
	if err := flowcontrol.DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for field, spoil := range map[string]func(*flowcontrol.Config){
		"policy: unknown policy": func(c *flowcontrol.Config) { c.Policy = "" },
		"slo.ttft: ":             func(c *flowcontrol.Config) { c.SLO.TTFT = -1 },
		"slo.tpot: ":             func(c *flowcontrol.Config) { c.SLO.TPOT = -1 },
		"slo.slowdown: is 1,":    func(c *flowcontrol.Config) { c.SLO.Slowdown = 1 },
		"slo.slowdown: is 11,":   func(c *flowcontrol.Config) { c.SLO.Slowdown = 11 },
		"slo.late: ":             func(c *flowcontrol.Config) { c.SLO.Late = 0 },
		"engine.cost_model.c0":   func(c *flowcontrol.Config) { c.Engine.CostModel.C0 = -1 },
		"engine.cost_model.c2":   func(c *flowcontrol.Config) { c.Engine.CostModel.C2 = -1 },
		"engine.kv_tokens: ":     func(c *flowcontrol.Config) { c.Engine.KVTokens = -1 },
		"engine.max_seqs: ":      func(c *flowcontrol.Config) { c.Engine.MaxSeqs = -1 },
		"engine.max_batched_tokens: ": func(c *flowcontrol.Config) {
			c.Engine.MaxBatchedTokens = -1
		},
		"policy: the settings of headroom": func(c *flowcontrol.Config) { c.Settings = nil },
		"fixed.per_runner: ": func(c *flowcontrol.Config) {
			*c = c.With(fixed.Name, fixed.Config{})
		},
	} {
		cfg := flowcontrol.DefaultConfig()
		spoil(&cfg)
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("got %v, want a fault of %s", err, field)
		}
	}
}

// Objectives are optional: one of them alone is absolute, none is relative.
func TestObjectivesAreOptional(t *testing.T) {
	for _, test := range []struct {
		ttft, tpot time.Duration
		relative   bool
	}{{0, 0, true}, {time.Second, 0, false}, {0, time.Millisecond, false}} {
		cfg := flowcontrol.DefaultConfig()
		cfg.SLO.TTFT, cfg.SLO.TPOT = test.ttft, test.tpot
		if err := cfg.Validate(); err != nil || cfg.SLO.Relative() != test.relative {
			t.Errorf("%v and %v: %v, relative %v, want %v", test.ttft, test.tpot, err,
				cfg.SLO.Relative(), test.relative)
		}
		usual := cfg.SLO.WithUsual()
		if usual.Relative() || usual.TTFT == 0 || usual.TPOT == 0 ||
			test.ttft > 0 && usual.TTFT != test.ttft || test.tpot > 0 && usual.TPOT != test.tpot {
			t.Errorf("%v and %v with usual ones: %+v", test.ttft, test.tpot, usual)
		}
	}
}

// A copy of a configuration that is changed leaves the original as it was.
func TestConfigIsAValue(t *testing.T) {
	cfg := flowcontrol.DefaultConfig()
	changed := cfg.Select(fixed.Name, fixed.Config{PerRunner: 7})
	if own := flowcontrol.OwnConfig[fixed.Config](changed, fixed.Name); own.PerRunner != 7 ||
		changed.Policy != fixed.Name {
		t.Errorf("changed: %q, %+v", changed.Policy, own)
	}
	if !reflect.DeepEqual(cfg, flowcontrol.DefaultConfig()) {
		t.Errorf("the original is changed: %+v", cfg)
	}
}

// Found schedules of simulations are stored as JSON.
func TestSettingsSurviveJSON(t *testing.T) {
	cfg := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 7})
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Shadow = flowcontrol.Shadow{} // there is none, so its settings are left out
	var again flowcontrol.Config
	if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, cfg) {
		t.Errorf("got %+v, %v, want %+v", again, err, cfg)
	}
}
