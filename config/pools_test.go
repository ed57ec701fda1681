package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/flowcontrol/headroom"
)

const withPools = `
flowcontrol:
  pools:
    night: {shared: false, headroom: {tuning: {pace: {gain: 0.2}}}}
    small: {policy: fixed, fixed: {per_runner: 3}}
  policy: aimd
  slo: {tpot: 80ms}
`

// A pool inherits all keys of flowcontrol, wherever they are in the file or among the settings.
func TestPoolsAreLaidOverTheRest(t *testing.T) {
	settings := []config.Setting{
		{Origin: "--set", Path: "flowcontrol.pools.night.headroom.tuning.pace.gain", Value: "0.3"},
		{Origin: "--set", Path: "flowcontrol.policy", Value: "headroom"},
	}
	cfg, err := config.Parse("f.yaml", []byte(withPools), settings...)
	if err != nil {
		t.Fatal(err)
	}
	all, night, small := cfg.FlowControl, cfg.FlowControl.For("", []string{"night"}),
		cfg.FlowControl.For("", []string{"small"})
	own := func(c flowcontrol.Config) headroom.Config {
		return flowcontrol.OwnConfig[headroom.Config](c, headroom.Name)
	}
	if night.Policy != "headroom" || night.SLO != all.SLO || night.Shared ||
		own(night).Tuning.Pace.Gain != 0.3 ||
		own(night).Tuning.Pace.MaxGrowth != own(all).Tuning.Pace.MaxGrowth {
		t.Errorf("night: %q, %+v, %+v", night.Policy, night.SLO, own(night))
	}
	limit := flowcontrol.OwnConfig[fixed.Config](small, fixed.Name)
	if small.Policy != fixed.Name ||
		limit.PerRunner != 3 || !small.Shared {
		t.Errorf("small: %q, %+v", small.Policy, limit)
	}
	if !all.Shared || all.Policy != "headroom" || own(all).Tuning.Pace.Gain == 0.3 {
		t.Errorf("the entry of a pool has changed the section: %+v", all)
	}
	written, err := cfg.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(written),
		"    night:\n      shared: false\n      headroom:\n        tuning:\n          pace:\n    "+
			"        gain: 0.3\n    small:") {
		t.Errorf("more is written than the keys of the pools:\n%s", written)
	}
	again, err := config.Parse("written.yaml", written)
	if diff := cmp.Diff(cfg, again, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("read back: %v\n%s", err, diff)
	}
}

func TestPoolsFaults(t *testing.T) {
	for _, test := range []struct{ file, want string }{
		{"flowcontrol:\n  pools:\n    night: {hedroom: {}}",
			"f.yaml:3: unknown key flowcontrol.pools.night.hedroom; did you mean " +
				"flowcontrol.pools.night.headroom?"},
		{"flowcontrol:\n  pools:\n    night: {headroom: {streams: 0}}",
			"f.yaml:3: flowcontrol.pools.night.headroom.streams: is \"0\", want off, some or all"},
		{"flowcontrol:\n  pools:\n    night: {pools: {other: {}}}",
			"f.yaml:3: flowcontrol.pools.night.pools cannot be nested; write it beside the other " +
				"entries of the table that contains it"},
		{"flowcontrol: {pools: [night]}",
			"f.yaml:1: flowcontrol.pools is a list, not a table of names and values"},
		{
			"upstreams:\n- {url: http://a:1, models: [day, noon]}\nflowcontrol:\n  pools:\n    " +
				"night: {policy: fixed}",
			"f.yaml:5: flowcontrol.pools.night: there is no pool of that name, and no " +
				"upstream serves a model of it; they serve day, noon",
		},
	} {
		if _, err := config.Parse("f.yaml", []byte(test.file)); err == nil ||
			err.Error() != test.want {
			t.Errorf("%s\n got %v\nwant %s", test.file, err, test.want)
		}
	}
	// Upstreams without a list of models may serve any.
	if _, err := config.Parse("f.yaml",
		[]byte(
			"upstreams: [{url: http://a:1, models: [day]}, {url: http://b:1}]\nflowcontrol: "+
				"{pools: {night: {policy: fixed}}}")); err != nil {
		t.Error(err)
	}
}

// A fault is reported once, where it was written. An entry that inherits the value is not named.
func TestInheritedFaultsAreReportedOnce(t *testing.T) {
	const upstreams = "upstreams: [{url: http://a:1, models: [m, v1.5, n]}]\n"
	for _, test := range []struct {
		name, file string
		settings   []config.Setting
		want       []string
	}{
		{"of the section", "flowcontrol:\n  headroom: {streams: maybe}\n  pools:\n" +
			"    m: {policy: fixed}\n    v1.5: {shared: false}\n", nil, []string{
			`f.yaml:3: flowcontrol.headroom.streams: is "maybe", want off, some or all`}},
		{"of an entry", "flowcontrol:\n  pools:\n    m: {slo: {ttft: -1s}}\n    n: {}\n", nil,
			[]string{"f.yaml:4: flowcontrol.pools.m.slo.ttft: is -1s, must not be negative"}},
		{"of both", "flowcontrol:\n  slo: {ttft: -1s}\n  pools:\n    v1.5: {slo: {ttft: -1s}}\n" +
			"    n: {policy: fixed}\n", nil, []string{
			"f.yaml:3: flowcontrol.slo.ttft: is -1s, must not be negative",
			"f.yaml:5: flowcontrol.pools.v1.5.slo.ttft: is -1s, must not be negative"}},
		{"of a flag", "flowcontrol: {pools: {m: {policy: fixed}}}\n",
			[]config.Setting{{Origin: "--set x", Path: "flowcontrol.slo.late", Value: "2"}},
			[]string{"--set x: flowcontrol.slo.late: is 2, must be above 0 and at most 0.1"}},
		{"of a shadow", "flowcontrol:\n  shadow: {policy: headroom, headroom: {streams: x}}\n" +
			"  pools: {m: {policy: fixed}}\n", nil, []string{
			`f.yaml:3: flowcontrol.shadow.headroom.streams: is "x", want off, some or all`}},
		{"of what an entry needs", "flowcontrol:\n  pools:\n    m: {}\n    v1.5: {policy: blind}\n",
			nil, []string{"f.yaml:5: flowcontrol.pools.v1.5.engine.cost_model: is unknown, and " +
				"the policy blind needs it; measure it with tidefill profile fit, or take " +
				"another policy"}},
	} {
		_, err := config.Parse("f.yaml", []byte(upstreams+test.file), test.settings...)
		var got []string
		for _, fault := range config.Faults(err) {
			got = append(got, fault.Error())
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("a fault %s (-want +got):\n%s", test.name, diff)
		}
	}
}

// Pages and logs of changes do not show what may be a key of a fallback.
func TestFallbacksHideSecrets(t *testing.T) {
	const base = "upstreams: [{url: http://a}]\npools:\n- {name: a, models: [m], max: 1"
	old, err := parse(base + "}\n")
	if err != nil {
		t.Fatal(err)
	}
	next, err := parse(base + ", fallback: {url: 'https://b', models: {m: x}, " +
		"money_per_day: 5, price_input: 1, headers: {X-Key: TOPSECRET}}}\n")
	if err != nil {
		t.Fatal(err)
	}
	changes, err := config.Compare(old, next)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := next.ShownYAML()
	if err != nil {
		t.Fatal(err)
	}
	text := string(shown)
	for _, c := range changes.Applied {
		text += c.String() + "\n"
	}
	if strings.Contains(text, "TOPSECRET") ||
		!strings.Contains(text, "pools.a.fallback.money_per_day: 0 -> 5") {
		t.Errorf("shown is %s", text)
	}
	if len(changes.Restart) > 0 {
		t.Errorf("a restart is needed for %v", changes.Restart)
	}
	_, err = parse("upstreams: [{url: http://a, name: a@fallback}]\n" + strings.TrimPrefix(base,
		"upstreams: [{url: http://a}]\n") + ", fallback: {url: 'https://b', models: {m: x}, " +
		"requests_per_minute: 5, headers: {'a b': x}}}\n")
	if err == nil || !strings.Contains(err.Error(), "upstreams[0].name") ||
		!strings.Contains(err.Error(), "pools[0].fallback.headers") {
		t.Errorf("its name is taken and its header wrong: %v", err)
	}
}
