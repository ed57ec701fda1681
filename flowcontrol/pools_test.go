package flowcontrol_test

import (
	"strings"
	"testing"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/aimd"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/flowcontrol/headroom"
)

func TestPoolsHaveTheirOwn(t *testing.T) {
	cfg := flowcontrol.DefaultConfig().Select(aimd.Name, aimd.DefaultConfig())
	batch := cfg.Select(fixed.Name, fixed.Config{PerRunner: 7})
	cfg.Pools = map[string]flowcontrol.Config{"batch": batch}
	if got := cfg.For("", []string{"chat"}); got.Policy != aimd.Name || got.Pools != nil {
		t.Errorf("a pool without an entry: %q, pools %v", got.Policy, got.Pools)
	}
	if got := cfg.For("", []string{"chat", "batch"}); got.Policy != fixed.Name ||
		got.Settings[fixed.Name] != batch.Settings[fixed.Name] {
		t.Errorf("a pool with an entry for one of its models: %q, %+v", got.Policy, got.Settings)
	}
	if cfg.UsesReadings() {
		t.Error("neither aimd nor fixed uses readings")
	}
	watched := cfg
	watched.Shadow.Policy = headroom.Name
	if !watched.UsesReadings() {
		t.Error("a shadow of the policy headroom uses readings")
	}
	chat := cfg.With(aimd.Name, aimd.Config{})
	chat.Policy, chat.Pools = headroom.Name, nil
	cfg.Pools["chat"] = chat
	if got := cfg.For("", []string{"chat", "batch"}); got.Policy != fixed.Name {
		t.Errorf("a pool with entries for two of its models: %q, want that of the first",
			got.Policy)
	}
	if got := cfg.For("chat", []string{"batch"}); got.Policy != headroom.Name {
		t.Errorf("a pool with entries for its name and its model: %q, want that of its name",
			got.Policy)
	}
	if !cfg.UsesReadings() {
		t.Error("the policy of one pool uses readings")
	}
	if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(),
		"pools.chat.aimd.per_runner: ") {
		t.Errorf("a fault in a pool's entry: %v", err)
	}
}
