package config_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidefill/tidefill/config"
)

// A new key is a fault here until it is in one of the lists. Whoever adds it decides whether a
// running daemon applies it.
func TestEveryKeyIsAppliedOrNeedsARestart(t *testing.T) {
	used := map[string]bool{}
	for _, k := range config.Keys() {
		if config.IsSection(k.Type) {
			continue
		}
		applied, restart := config.Under(config.RunTimeKeys, k.Path),
			config.Under(config.RestartKeys, k.Path)
		if applied && strings.HasPrefix(k.Path, "pools[].") {
			restart = false // an exception to its list
		}
		if applied == restart {
			t.Errorf("%s: applied at run time is %v and needs a restart is %v; want one of both",
				k.Path, applied, restart)
		}
		if k.NeedsRestart() != restart {
			t.Errorf("%s: NeedsRestart is %v", k.Path, k.NeedsRestart())
		}
		for _, listed := range slices.Concat(config.RunTimeKeys, config.RestartKeys) {
			used[listed] = used[listed] || config.Under([]string{listed}, k.Path)
		}
	}
	for listed, any := range used {
		if !any {
			t.Errorf("%s is listed and is no key", listed)
		}
	}
}

// Each key is changed alone. The change must be reported once, under its own path, and must be part
// of the running configuration only if it is applied.
func TestChangesOfEveryKey(t *testing.T) {
	text := map[string]string{ // values other than the default of keys without a general one
		"log.level": "warn", "log.format": "json", "store.backend": "ledger",
		"listen": "127.0.0.1:1", "admin_listen": "127.0.0.1:2",
		"scheduler.policy": "edf", "scheduler.urgency": "never",
		"scheduler.between_queues": "weighted", "scheduler.expression": "created",
		"scheduler.tenant_weights": "{a: 2}", "scheduler.queues": "[{name: a, match: [{}]}]",
		"inline.tenant_weights": "{a: 2}", "inline.policy": "weighted", "inline.classes": "[]",
		"api.unknown_models": "wait", "api.admission": "strict", "api.tenant_quotas": "{a: 1}",
		"http.proxies": "[10.0.0.0/8]",
		"http.hosts":   "[a]", "http.origins": "[https://a]", "upstreams": "[{url: http://a}]",
		"webhooks":           "[{name: a, url: http://a, secret_env: A}]",
		"flowcontrol.policy": "aimd", "flowcontrol.pools": "{a: {shared: false}}",
		"telemetry.prometheus.headers":                  "{a: b}",
		"telemetry.prometheus.runners.values":           "{a: b}",
		"dispatch.retry.on":                             "[500]",
		"telemetry.prometheus.tls.insecure_skip_verify": "true",
	}
	old := config.Default()
	for _, k := range config.Keys() {
		if config.IsSection(k.Type) || strings.Contains(k.Path, "[]") ||
			strings.HasPrefix(k.Path, "flowcontrol.") && text[k.Path] == "" {
			continue
		}
		value := text[k.Path]
		if value == "" {
			value = other(k.Default)
		}
		next := config.Default()
		// Faults of other keys, such as a policy without its expression, do not matter here.
		config.Read("", nil, &next, config.Setting{Origin: "--set", Path: k.Path, Value: value})
		changes, err := config.Compare(old, next)
		if err != nil {
			t.Fatal(err)
		}
		all := slices.Concat(changes.Applied, changes.Restart)
		if len(all) != 1 || !strings.HasPrefix(all[0].Path, k.Path) {
			t.Errorf("%s=%s: got the changes %+v, want one of that key", k.Path, value, changes)
			continue
		}
		running := old.Running(next)
		want := next
		if k.NeedsRestart() {
			want = old
		}
		if (len(changes.Restart) == 1) != k.NeedsRestart() {
			t.Errorf("%s: got %+v, needs a restart is %v", k.Path, changes, k.NeedsRestart())
		}
		if reflect.DeepEqual(want, running) {
			continue // comparing for a person to read takes a tenth of a second
		}
		if diff := cmp.Diff(want, running, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: running configuration (-want +got):\n%s", k.Path, diff)
		}
	}
}

// other returns a value of a key that differs from its default.
func other(v reflect.Value) string {
	switch {
	case v.Type().String() == "time.Duration":
		return "77s"
	case v.CanInt(), v.CanUint():
		return "77"
	case v.CanFloat():
		return "0.5"
	case v.Kind() == reflect.Bool && v.Bool():
		return "false"
	case v.Kind() == reflect.Bool:
		return "true"
	case v.Kind() == reflect.Slice:
		return "[other]"
	default:
		return "other"
	}
}

func TestChangesAreNamed(t *testing.T) {
	const base = "upstreams:\n- {url: http://a, headers: {X-Token: one}}\n- {url: http://b}\n"
	tests := []struct {
		name, file       string
		applied, restart []string
	}{
		{name: "nothing", file: base},
		{name: "of both kinds", file: base + "listen: :9090\nlog: {level: warn, format: json}\n",
			applied: []string{"log.level: INFO -> WARN"},
			restart: []string{"listen: 127.0.0.1:8080 -> :9090", "log.format: text -> json"}},
		{name: "upstreams by name",
			file: "upstreams:\n- {url: http://b, models: [m]}\n" +
				"- {url: 'http://me:secret@c', metrics: 'http://c/m?key=secret'}\n",
			applied: []string{
				"upstreams.http://a: removed {url: 'http://a', headers: {X-Token: (hidden)}}",
				"upstreams.http://b.models: added [m]",
				"upstreams.http://hidden@c: added {url: 'http://hidden@c', " +
					"metrics: 'http://c/m?hidden'}"}},
		{name: "a gateway",
			file: strings.ReplaceAll(base, "{url: http://b}", "{url: http://b, mode: gateway, "+
				"engines: ['http://me:secret@e/metrics'], tuning: {cache_headers: true}}"),
			applied: []string{"upstreams.http://b.mode: added gateway",
				"upstreams.http://b.engines: added ['http://hidden@e/metrics']",
				"upstreams.http://b.tuning: added {cache_headers: true}"}},
		{name: "a default header that is removed",
			file: strings.ReplaceAll(base, "X-Token: one", "X-Token: one, X-Priority: ''"),
			applied: []string{
				"upstreams.http://a.headers.X-Priority: added \"\""}},
		{name: "a secret",
			file:    strings.ReplaceAll(base, "one", "two"),
			applied: []string{"upstreams.http://a.headers.X-Token: another secret"}},
		{name: "the order of upstreams",
			file: "upstreams:\n- {url: http://b}\n" +
				"- {url: http://a, headers: {X-Token: one}}\n"},
		{name: "one pool",
			file: base + "flowcontrol: {pools: {m: {policy: aimd}, n: {shared: false}}}\n",
			applied: []string{"flowcontrol.pools.m: added {policy: aimd}",
				"flowcontrol.pools.n: added {shared: false}"}},
	}
	old, err := parse(base)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			next, err := parse(test.file)
			if err != nil {
				t.Fatal(err)
			}
			changes, err := config.Compare(old, next)
			if err != nil {
				t.Fatal(err)
			}
			rows := func(all []config.Change) (rows []string) {
				for _, c := range all {
					rows = append(rows, c.String())
				}
				return rows
			}
			if diff := cmp.Diff(test.applied, rows(changes.Applied)); diff != "" {
				t.Errorf("applied (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.restart, rows(changes.Restart)); diff != "" {
				t.Errorf("restart (-want +got):\n%s", diff)
			}
		})
	}
}

func TestShownConfigurationHasNoSecrets(t *testing.T) {
	cfg, err := parse("upstreams:\n- {url: 'https://me:pass1@a/v1', metrics: " +
		"'https://me:pass3@a/metrics?key=pass2', headers: {X-Key: pass4, X-Priority: ''}}\n" +
		"telemetry: {prometheus: {url: 'http://p', headers: {X-Scope-OrgID: pass5}}}\n")
	if err != nil {
		t.Fatal(err)
	}
	shown, err := cfg.ShownYAML()
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := cfg.ShownJSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(shown), string(asJSON)} {
		if strings.Contains(text, "pass1") || strings.Contains(text, "pass2") ||
			strings.Contains(text, "pass3") || strings.Contains(text, "pass4") ||
			strings.Contains(text, "pass5") {
			t.Errorf("a secret is shown:\n%s", text)
		}
	}
	if _, err := config.Parse("shown.yaml", shown); err != nil {
		t.Errorf("what is shown is no configuration: %v", err)
	}
}
