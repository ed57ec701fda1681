package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/store"
)

func parse(file string, sets ...string) (config.Config, error) {
	var settings []config.Setting
	for _, set := range sets {
		s, err := config.ParseSetting(set)
		if err != nil {
			return config.Config{}, err
		}
		settings = append(settings, s)
	}
	return config.Parse("tidefill.yaml", []byte(file), settings...)
}

func TestDefaultsAreValid(t *testing.T) {
	if err := config.Default().Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestLaterValuesWin(t *testing.T) {
	cfg, err := parse("listen: :9000\nshutdown: {drain: 2m, delay: 0}\nlog: {level: warn}\n",
		"shutdown.drain=1d", "node=a", "node=7")
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Listen, want.Node, want.Log.Level, want.Shutdown.Drain = ":9000", "7", 4, 24*time.Hour
	if diff := cmp.Diff(want, cfg); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestFaultsAreNamed(t *testing.T) {
	// The error lists the backends, of which there may be more.
	_, unknownBackend := store.FindBackend("oracle")
	tests := []struct {
		name, file string
		sets       []string
		want       []string // one fault each
	}{
		{name: "mistyped key", file: "\nlog:\n  levle: info\n",
			want: []string{"tidefill.yaml:3: unknown key log.levle; did you mean log.level?"}},
		{name: "key in the wrong section", file: "log:\n  keys_file: x\n",
			want: []string{
				"tidefill.yaml:2: unknown key log.keys_file; did you mean auth.keys_file?"}},
		{name: "key like no other", file: "log: {zzzzzzzzzzz: 1}",
			want: []string{
				"tidefill.yaml:1: unknown key log.zzzzzzzzzzz; log has the keys format, level"}},
		{
			name: "several at once",
			file: "listn: x\nshutdown:\n  drain: 30\n  delay: soon\nauth: yes\n", want: []string{
				"tidefill.yaml:1: unknown key listn; did you mean listen?",
				"tidefill.yaml:3: shutdown.drain: 30 has no unit; write 30s or 30ms",
				`tidefill.yaml:4: shutdown.delay: "soon" is not a duration; write one such as 500ms, 30s, 1h30m or 7d`,
				`tidefill.yaml:5: auth is "yes", not a section with keys of its own`,
			}},
		{name: "several bad values",
			file: "listen: nowhere\nlog: {format: xml}\nshutdown:\n  delay: -1s\n", want: []string{
				`tidefill.yaml:1: listen: "nowhere" is not an address; write host:port, such as 127.0.0.1:8080 or :8080`,
				`tidefill.yaml:2: log.format is "xml", not text or json`,
				"tidefill.yaml:4: shutdown.delay is -1s; set it to 0 or more",
			}},
		{name: "unknown store", file: "store: {backend: oracle}\n", want: []string{
			"tidefill.yaml:1: store.backend: " + unknownBackend.Error()}},
		{name: "wrong kinds", file: "auth: {insecure_no_auth: maybe}\nlisten: [a]\n",
			want: []string{
				`tidefill.yaml:1: auth.insecure_no_auth is "maybe"; give true or false`,
				`tidefill.yaml:2: listen is a list; give a text`,
			}},
		{name: "key given twice", file: "node: a\nlisten: :1\nnode: b\n",
			want: []string{
				"tidefill.yaml:3: node is set twice, first at tidefill.yaml:1; remove one"}},
		{name: "one address for two listeners", file: "admin_listen: 127.0.0.1:8080\n",
			want: []string{
				"tidefill.yaml:1: admin_listen is 127.0.0.1:8080, the address of the API; give " +
					"it one of its own"}},
		{name: "not YAML", file: "a: [\n",
			want: []string{"tidefill.yaml:1: did not find expected node content"}},
		{name: "not a mapping", file: "- a\n",
			want: []string{
				"tidefill.yaml:1: the file is a list, not a section with keys of its own"}},
		{name: "two documents", file: "node: a\n---\nnode: b\n",
			want: []string{"tidefill.yaml:2: a second YAML document begins here; remove one"}},
		{name: "headers", file: "upstreams:\n  - url: http://a:1\n    tenant_header: X Tenant\n",
			want: []string{
				`tidefill.yaml:3: upstreams[0].tenant_header "X Tenant" is no valid header name: use letters, digits and '-'`,
			}},
		{name: "dialect",
			file: "upstreams:\n  - url: http://a:1\n    tuning:\n      engine_priority: vlm\n" +
				"      fairness: all\npools:\n  - {name: p, models: [m], max: 1,\n" +
				"     runners: {tuning: {engine_priority: x}}}\n",
			want: []string{
				`tidefill.yaml:4: upstreams[0].tuning.engine_priority: is "vlm", want vllm, sglang or sglang-low-first`,
				`tidefill.yaml:5: upstreams[0].tuning.fairness: is "all", want tenant; send a fixed fairness id by headers`,
				`tidefill.yaml:8: pools[0].runners.tuning.engine_priority: is "x", want vllm, sglang or sglang-low-first`,
			}},
		{name: "selectors", file: "telemetry:\n  prometheus:\n    url: http://p:9090\n" +
			"    ttft: ['a{']\n",
			want: []string{
				`tidefill.yaml:4: telemetry.prometheus.ttft[0]: "a{" has no closing brace`,
			}},
		{name: "upstreams with secrets", file: "upstreams:\n" +
			"  - url: http://a:1\n    metrics: gpu:8000/metrics?token=S\n" +
			"  - url: htp://u:pw@gpu\n" +
			"  - url: http://b:1\n    mode: gateway\n    engines: ['gpu:8000/metrics?token=S']\n" +
			"telemetry: {prometheus: {url: 'prometheus:9090?token=S'}}\n",
			want: []string{
				"tidefill.yaml:3: upstreams[0].metrics is (hidden), not a URL; write " +
					"http://host:port/metrics, or none",
				"tidefill.yaml:4: upstreams[1].url is (hidden), not a URL; write http://host:port",
				"tidefill.yaml:7: upstreams[2].engines[0]: (hidden) is no URL, and a label's " +
					"value is looked up in Prometheus; write http://host:port/metrics, or set " +
					"telemetry.prometheus.url and telemetry.prometheus.runners.label",
				`tidefill.yaml:8: telemetry.prometheus.url: "the value" is no URL; write ` +
					"http://host:port",
			}},
		{name: "upstreams", file: "upstreams:\n  - url: http://a:1\n  - url: gpu-2\n    name: b\n",
			want: []string{
				`tidefill.yaml:3: upstreams[1].url is "gpu-2", not a URL; write http://host:port`,
			}},
		{name: "sections' own faults",
			file: "scheduler:\n  tuning: {guard_min: -1s}\n" +
				"flowcontrol: {fixed: {per_runner: 0}}\n" +
				"api:\n\n  tuning: {orphan_after: 1s}\n", want: []string{
				"tidefill.yaml:6: api.tuning.orphan_after is 1s; set it to 1m or more, or to 0",
				"tidefill.yaml:2: scheduler.tuning.guard_min: is -1s, must not be negative",
				"tidefill.yaml:3: flowcontrol.fixed.per_runner: is 0, must be at least 1",
			}},
		{name: "faults two sections deep",
			sets: []string{
				"dispatch={retry: {tuning: {deaths: 0}}, tuning: {breaker: {base: 0s}}}"},
			want: []string{
				"--set dispatch: dispatch.retry.tuning.deaths: is 0, must be at least 1",
				"--set dispatch: dispatch.tuning.breaker: base 0s and max 15s must be positive " +
					"and in order",
			}},
		{name: "mistyped key of a block called tuning",
			sets: []string{"dispatch.chunk_line=3"},
			want: []string{"--set dispatch.chunk_line: unknown key dispatch.chunk_line; " +
				"did you mean dispatch.tuning.chunk_lines?"}},
		{name: "keys that are in a block called tuning",
			file: "dispatch:\n  lease_ttl: 3s\n  retry: {max: 1s}\n",
			sets: []string{"dispatch.plan.retry.max=1s", "dispatch.plan.look_ahead=5"},
			want: []string{
				"tidefill.yaml:2: unknown key dispatch.lease_ttl; " +
					"did you mean dispatch.tuning.lease_ttl?",
				"tidefill.yaml:3: unknown key dispatch.retry.max; " +
					"did you mean dispatch.retry.tuning.max?",
				"--set dispatch.plan.retry.max: unknown key dispatch.plan; " +
					"did you mean dispatch.retry.tuning.max?",
				"--set dispatch.plan.look_ahead: unknown key dispatch.plan; " +
					"did you mean dispatch.tuning.look_ahead?",
			}},
		{name: "section that was renamed, with keys that several sections have",
			sets: []string{"flowcontrol.headroom.tuning.shares.start=1"},
			want: []string{
				"--set flowcontrol.headroom.tuning.shares.start: unknown key " +
					"flowcontrol.headroom.tuning.shares; did you mean " +
					"flowcontrol.headroom.tuning.target_share.start?",
			}},
		{name: "unknown setting", sets: []string{"log.lvl=info"},
			want: []string{"--set log.lvl: unknown key log.lvl; did you mean log.level?"}},
		{name: "setting below a value", sets: []string{"node.name=x"},
			want: []string{"--set node.name: node is a table; give a text"}},
		{name: "bad setting", sets: []string{"data="},
			want: []string{
				"--set data: data is empty; set it to the directory for files and results"}},
		{name: "setting without a value", sets: []string{"data"},
			want: []string{"--set data: write --set key.path=value"}},
		{name: "unreadable level", sets: []string{"log.level=loud"},
			want: []string{`--set log.level: log.level is "loud"; use debug, info, warn or error`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := parse(test.file, test.sets...)
			var got []string
			for _, fault := range config.Faults(err) {
				got = append(got, fault.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestYAMLReadsBack(t *testing.T) {
	cfg, err := parse("shutdown: {delay: 36h, drain: 90m}\nnode: 'yes'\nauth: {keys_file: ''}\n")
	if err != nil {
		t.Fatal(err)
	}
	written, err := cfg.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := parse(string(written))
	if err != nil {
		t.Fatalf("%v\n%s", err, written)
	}
	if diff := cmp.Diff(cfg, again, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("read back (-written +read):\n%s", diff)
	}
	for _, key := range config.Keys() {
		last := key.Path[strings.LastIndex(key.Path, ".")+1:]
		if !strings.ContainsAny(key.Path, "[<") && !strings.Contains(string(written), last+":") {
			t.Errorf("the written configuration lacks %s:\n%s", key.Path, written)
		}
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	if _, err := config.Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Load of a missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte("# nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(path); err != nil {
		t.Errorf("Load of an empty file: %v", err)
	}
}

func TestDurations(t *testing.T) {
	tests := map[string]time.Duration{
		"0": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "7d": 168 * time.Hour,
		"1d12h": 36 * time.Hour, "0.5d": 12 * time.Hour,
		"-1d": -24 * time.Hour,
	}
	for s, want := range tests {
		got, err := config.ParseDuration(s)
		if err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", s, got, err, want)
		}
		again, err := config.ParseDuration(config.FormatDuration(got))
		if err != nil || again != got {
			t.Errorf("FormatDuration(%v) = %q, read back as %v, %v", got, config.FormatDuration(
				got), again, err)
		}
	}
	for _, s := range []string{"", "d", "1", "soon", "1dd", "1 d"} {
		if d, err := config.ParseDuration(s); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", s, d)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("listen: :1\nlog: {level: info}\n", "shutdown.drain=1d")
	f.Add("a: &a [*a]\n", "upstreams=[{url: x}]")
	f.Fuzz(func(t *testing.T, file, set string) {
		cfg, err := parse(file, set)
		if err != nil {
			return
		}
		written, err := cfg.YAML()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parse(string(written))
		if err != nil {
			t.Fatalf("an effective configuration is refused: %v\n%s", err, written)
		}
		if diff := cmp.Diff(cfg, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("read back (-written +read):\n%s", diff)
		}
	})
}
