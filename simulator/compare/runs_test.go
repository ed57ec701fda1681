package compare

import (
	"testing"

	"github.com/tidefill/tidefill/simulator"
)

// TestSettingsOfOtherPoliciesKeepRuns checks that a baseline's run is used again after the settings
// of another policy have changed, and not after its own have.
func TestSettingsOfOtherPoliciesKeepRuns(t *testing.T) {
	key := func(set ...string) string {
		cfg, err := Configuration{}.Load(append(set, "flowcontrol.policy=aimd")...)
		if err != nil {
			t.Fatal(err)
		}
		key, err := runKeyOf("version", &Scenario{}, simulator.Setup{Policy: policyOf(cfg)})
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	plain := key()
	if key("flowcontrol.headroom.tuning.first_tokens=0.5") != plain {
		t.Error("a setting of headroom changes the key of a run of aimd")
	}
	if key("flowcontrol.aimd.decrease=0.5") == plain {
		t.Error("a setting of aimd does not change the key of its run")
	}
}
