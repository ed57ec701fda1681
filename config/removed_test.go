package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/config"
)

func TestRemovedKeysSayWhatApplies(t *testing.T) {
	_, err := parse("clock: {tuning: {max_jump: 1h}}\n"+
		"webhooks:\n- {name: a, url: 'http://a', secret_env: A, timeout: 5s}\n"+
		"flowcontrol:\n  headroom: {start: 3, tuning: {brake: {after: 1s, hold: 2s}}}\n"+
		"  pools: {m: {headroom: {tuning: {fit: {half_life: 5}}}}}\n"+
		"  shadow: {aimd: {increase: 2}}\n", "api.max_streams=9")
	var got []string
	for _, fault := range config.Faults(err) {
		got = append(got, fault.Error())
	}
	want := []string{
		"tidefill.yaml:1: clock.tuning.max_jump is no key any more: it is 10m; remove it",
		"tidefill.yaml:3: webhooks[0].timeout is no key any more: it is 10s; remove it",
		"tidefill.yaml:5: flowcontrol.headroom.start is no key any more: it is 2; remove it",
		"tidefill.yaml:5: flowcontrol.headroom.tuning.brake.after is no key any more: it is 3s; " +
			"remove it",
		"tidefill.yaml:5: flowcontrol.headroom.tuning.brake.hold is no key any more: it is 30s; " +
			"remove it",
		"tidefill.yaml:7: flowcontrol.shadow.aimd.increase is no key any more: it is 1; remove it",
		"--set api.max_streams: api.max_streams is no key any more: it is twice " +
			"api.max_requests; remove it",
		"tidefill.yaml:6: flowcontrol.pools.m.headroom.tuning.fit.half_life is no key any more: " +
			"it is 3000; remove it",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestNoKeyIsRemoved(t *testing.T) {
	for _, k := range config.Keys() {
		if strings.Contains("\n"+config.RemovedText, "\n"+k.Path+": ") {
			t.Errorf("%s is a key, and listed as removed", k.Path)
		}
	}
}
