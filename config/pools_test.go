package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidefill/tidefill/config"
)

const withPools = `
flowcontrol:
  pools:
    night: {probe: {shared: false, pace: {gain: 0.2}}}
    small: {policy: fixed, fixed: {per_runner: 3}}
  policy: aimd
  slo: {tpot: 80ms}
`

// What a pool has of its own is laid over all that is said of flow control, before it in the file,
// behind it or beside it.
func TestPoolsAreLaidOverTheRest(t *testing.T) {
	settings := []config.Setting{
		{Origin: "--set", Path: "flowcontrol.pools.night.probe.pace.gain", Value: "0.3"},
		{Origin: "--set", Path: "flowcontrol.policy", Value: "probe"},
	}
	cfg, err := config.Parse("f.yaml", []byte(withPools), settings...)
	if err != nil {
		t.Fatal(err)
	}
	all, night, small := cfg.FlowControl, cfg.FlowControl.For([]string{"night"}),
		cfg.FlowControl.For([]string{"small"})
	if night.Policy != "probe" || night.SLO != all.SLO || night.Probe.Shared ||
		night.Probe.Pace.Gain != 0.3 || night.Probe.Pace.Slew != all.Probe.Pace.Slew {
		t.Errorf("night: %q, %+v, %+v", night.Policy, night.SLO, night.Probe)
	}
	if small.Policy != "fixed" || small.Fixed.PerRunner != 3 || !small.Probe.Shared {
		t.Errorf("small: %q, %+v", small.Policy, small.Fixed)
	}
	if !all.Probe.Shared || all.Policy != "probe" {
		t.Errorf("what a pool has of its own has become everybody's: %+v", all.Probe)
	}
	written, err := cfg.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(written),
		"    night:\n      probe:\n        shared: false\n        pace:\n          gain: 0.3\n    small:") {
		t.Errorf("written is more than what pools have of their own:\n%s", written)
	}
	again, err := config.Parse("written.yaml", written)
	if diff := cmp.Diff(cfg, again, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("read back: %v\n%s", err, diff)
	}
}

func TestPoolsFaults(t *testing.T) {
	for _, test := range []struct{ file, want string }{
		{"flowcontrol:\n  pools:\n    night: {prob: {}}",
			"f.yaml:3: unknown key flowcontrol.pools.night.prob; did you mean flowcontrol.pools.night.probe?"},
		{"flowcontrol:\n  pools:\n    night: {probe: {streams: 0}}",
			"f.yaml:3: flowcontrol.pools.night.probe.streams: is 0, must be at least 1"},
		{"flowcontrol:\n  pools:\n    night: {pools: {other: {}}}",
			"f.yaml:3: flowcontrol.pools.night.pools can't stand here; write it beside the other entries of the table around it"},
		{"flowcontrol: {pools: [night]}",
			"f.yaml:1: flowcontrol.pools is a list, not a table of names and values"},
		{
			"upstreams:\n- {url: http://a:1, models: [day, noon]}\nflowcontrol:\n  pools:\n    night: {policy: fixed}",
			"f.yaml:5: flowcontrol.pools.night: no upstream serves a model of that name; they serve day, noon",
		},
	} {
		if _, err := config.Parse("f.yaml", []byte(test.file)); err == nil ||
			err.Error() != test.want {
			t.Errorf("%s\n got %v\nwant %s", test.file, err, test.want)
		}
	}
	// Upstreams that are asked what they serve may say so later.
	if _, err := config.Parse("f.yaml",
		[]byte(
			"upstreams: [{url: http://a:1, models: [day]}, {url: http://b:1}]\nflowcontrol: {pools: {night: {policy: fixed}}}")); err != nil {
		t.Error(err)
	}
}
