package registry_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/registry"
)

// Each case is an override of scheduling, and a part of the fault; empty: it is possible.
func TestProfileOverrides(t *testing.T) {
	e, err := read(nil, profiles()).Profile(registry.Viewer{}, "day")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`{"max_concurrency": 7, "retry_policy": {"max_retries": 0}}`: "",
		`{"provider_preference": ["a b", "c"]}`:                      "",
		`{"completion_window": "best_effort"}`:                       "must be at most the profile's 24h",
		`{"priority": "high"}`:                                       "must be at most the profile's normal",
		`{"max_concurrency": null}`:                                  "is null",
		`{"max_concurrency": 9223372036854775807}`:                   "must be from 1 to 2147483647",
		`{"request_timeout_seconds": 9223372036854775807}`:           "must be from 1 to 2592000",
		`{"retry_policy": {"max_retries": 9223372036854775807}}`:     "must be from 0 to 99",
		`{"retry_policy": {"max_retries": 1, "x": 2}}`:               "unknown key",
		`{"provider_preference": ["a", "a"]}`:                        "list a provider once",
		`{"provider_preference": ["a\u0000"]}`:                       "contains a control character",
		`{"provider_preference": ["` + strings.Repeat("a", 200) +
			`"]}`: "must have 1 to 128",
		`{"provider_preference": [` + strings.Repeat(`"a",`, 200) + `"a"]}`: "at most 100",
		`{"storage": {}}`: "can't be overridden",
	} {
		var args map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &args); err != nil {
			t.Fatal(err)
		}
		_, faults := e.Item.Override(args)
		got := ""
		if len(faults) > 0 {
			got = faults[0].Error()
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%.100s: got %q, want %q", text, got, want)
		}
	}
	if *e.Item.Spec.Scheduling.RetryPolicy.MaxRetries != 3 {
		t.Error("an override changed the profile")
	}
}

// A bound that bounds nothing, or that JSON can't carry, is refused.
func TestBoundsAreFinite(t *testing.T) {
	for _, bound := range []string{"{max: .nan}", "{max: .inf}", "{min: -.inf}",
		"{min: 2, max: 1}"} {
		c := read(nil, template("engine_args:=>overrides_allowed: {engine_args: {max_num_seqs: "+
			bound+"}}\n    engine_args:"))
		p := read(nil, profiles("quota:=>overrides_allowed: {scheduling: {max_concurrency: "+
			bound+"}}\n    quota:"))
		if len(c.Templates())+len(p.Profiles()) > 0 {
			t.Errorf("%s is in force", bound)
		}
	}
}
