package flowcontrol_test

import (
	"strings"
	"testing"

	"github.com/tidefill/tidefill/flowcontrol"
)

func TestPoolsHaveTheirOwn(t *testing.T) {
	cfg := flowcontrol.DefaultConfig()
	own := cfg
	own.Policy, own.Fixed.PerRunner = "fixed", 7
	cfg.Pools = map[string]flowcontrol.Config{"batch": own}
	if got := cfg.For([]string{"chat"}); got.Policy != "aimd" || got.Pools != nil {
		t.Errorf("a pool that nothing is said of: %q, pools %v", got.Policy, got.Pools)
	}
	if got := cfg.For([]string{"chat", "batch"}); got.Policy != "fixed" ||
		got.Fixed.PerRunner != 7 {
		t.Errorf("a pool that is named by one of its models: %q, %d lines", got.Policy,
			got.Fixed.PerRunner)
	}
	if cfg.HeedsReadings() {
		t.Error("neither aimd nor fixed heeds readings")
	}
	own.Policy = "probe"
	cfg.Pools["chat"] = own
	if got := cfg.For([]string{"chat", "batch"}); got.Policy != "fixed" {
		t.Errorf("named by two of its models: %q, want that of the first", got.Policy)
	}
	if !cfg.HeedsReadings() {
		t.Error("one pool's policy heeds readings")
	}
	own.Probe.Streams = 0
	cfg.Pools["chat"] = own
	if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(),
		"pools.chat.probe.streams: ") {
		t.Errorf("a fault in a pool's own: %v", err)
	}
}
