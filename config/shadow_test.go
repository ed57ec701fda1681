package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/headroom"
)

const shadowFile = `flowcontrol:
  headroom: {per_runner: 3}
  shadow: {policy: headroom, headroom: {per_runner: 5}}
  pools:
    m: {shared: false}
    n: {shadow: {policy: aimd}}
    o: {shadow: {policy: ""}}
`

func TestShadowHasItsOwnSettings(t *testing.T) {
	cfg, err := parse(shadowFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := func(c flowcontrol.Config) int {
		return flowcontrol.OwnConfig[headroom.Config](c, headroom.Name).PerRunner
	}
	shadow, _ := cfg.FlowControl.ForShadow()
	if lines(cfg.FlowControl) != 3 || lines(shadow) != 5 {
		t.Errorf("per_runner is %d, and %d of the shadow, want 3 and 5", lines(cfg.FlowControl),
			lines(shadow))
	}
	for pool, want := range map[string]string{"m": "headroom", "n": "aimd", "o": ""} {
		if got := cfg.FlowControl.For("", []string{pool}).Shadow.Policy; got != want {
			t.Errorf("the shadow of pool %s is %q, want %q", pool, got, want)
		}
	}
	if shadow, _ := cfg.FlowControl.For("", []string{"m"}).ForShadow(); shadow.Shared {
		t.Error("the shadow of a pool that is not shared takes it for a shared one")
	}
	text, err := cfg.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := config.Parse("effective.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cfg, again, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	if n := strings.Count(string(text), "target_share:"); n > 3 {
		t.Errorf("%d times target_share: the settings of shadows are shown although they are "+
			"the defaults:\n%s", n, text)
	}
}

// The policy blind needs a cost model, as policies of other modules may.
func init() {
	flowcontrol.Register("blind", flowcontrol.Factory{Needs: flowcontrol.Needs{CostModel: true}})
}

func TestFaultsOfShadowsAreNamed(t *testing.T) {
	for file, want := range map[string]string{
		"{shadow: {policy: headrom}}": "tidefill.yaml:1: flowcontrol.shadow.policy: unknown policy",
		"{shadow: {policy: headroom, headroom: {per_runner: 0}}}": "tidefill.yaml:1: " +
			"flowcontrol.shadow.headroom.per_runner: is 0",
		"{shadow: {headroom: {per_runer: 1}}}": "did you mean " +
			"flowcontrol.shadow.headroom.per_runner?",
		"{shadow: {policy: blind}}": "and the policy blind needs it",
		"{pools: {m: {shadow: {policy: x}}}}": "tidefill.yaml:1: " +
			"flowcontrol.pools.m.shadow.policy: unknown policy",
	} {
		if _, err := parse("flowcontrol: " + file); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", file, err, want)
		}
	}
}
