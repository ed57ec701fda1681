package main

import (
	"strings"
	"testing"

	"github.com/tidefill/tidefill/internal/apptest"
)

func TestMistakesAndErrors(t *testing.T) {
	t.Setenv("TIDEFILL_SERVER", "http://127.0.0.1:1")
	bad := writeFile(t, "bad.yaml", "flowcontrol:\n  polcy: fixed\nlisten: 1\n")
	exposed := writeFile(t, "exposed.yaml",
		"listen: 0.0.0.0:0\nupstreams: [{url: http://127.0.0.1:1}]\n")
	tests := []struct {
		name   string
		args   []string
		status int
		want   []string // in what is written to standard error
	}{
		{"unknown command", []string{"serv"}, exitUsage, []string{`unknown command "serv"`,
			"--help"}},
		{"unknown subcommand", []string{"batch", "sumbit"}, exitUsage,
			[]string{`unknown command "sumbit"`}},
		{"unknown flag", []string{"version", "--loud"}, exitUsage,
			[]string{"unknown flag: --loud"}},
		{"no batch", []string{"batch", "get"}, exitUsage,
			[]string{"name batches, or select them by --latest, --status"}},
		{"no batches", []string{"batch", "cancel"}, exitUsage, []string{"--latest, --status"}},
		{"ids and a selection", []string{"batch", "cancel", "b", "--model", "m"}, exitUsage,
			[]string{"ids exclude"}},
		{"two of one", []string{"verify", "a", "b"}, exitUsage, []string{"takes one batch"}},
		{"mistyped subcommand", []string{"batch", "lst"}, exitUsage, []string{
			`unknown command "lst" for "tidefill batch"; did you mean list?`}},
		{"mistyped command", []string{"lst"}, exitUsage, []string{
			`unknown command "lst" for "tidefill"; did you mean batches?; see tidefill --help`}},
		{"mistyped name", []string{"bach"}, exitUsage, []string{"did you mean batch?"}},
		{"mistyped below a plural", []string{"batches", "cancle"}, exitUsage,
			[]string{"did you mean cancel?"}},
		{"unknown format", []string{"batch", "list", "-o", "xml"}, exitUsage,
			[]string{"give one of json, yaml, wide, name"}},
		{"two formats", []string{"files", "list", "-q", "-o", "wide"}, exitUsage,
			[]string{"--quiet and --output wide exclude each other"}},
		{"priority in words", []string{"batch", "submit", bad, "--priority", "high"}, exitUsage,
			[]string{`--priority is "high"; give an integer from -100 to 100`}},
		{"number in words", []string{"batch", "list", "--limit", "few"}, exitUsage,
			[]string{`--limit is "few"; give an integer`}},
		{"log level", []string{"serve", "--log-level", "verbose", "--upstream", "http://a"},
			exitError, []string{`log.level is "verbose"; use debug, info, warn or error`}},
		{"migrate anything", []string{"migrate"}, exitUsage, []string{"--config FILE, or --data"}},
		{"unknown context", []string{"batch", "list", "--context", "prod"}, exitUsage,
			[]string{`there is no context "prod"`, "tidefill context add prod --server URL"}},
		{"bad metadata", []string{"batch", "submit", bad, "--meta", "x"}, exitUsage,
			[]string{"--meta x: write --meta key=value"}},
		{"bad server", []string{"batch", "list", "--server", "gpu-1"}, exitUsage,
			[]string{`"gpu-1" is not a URL`}},
		{"bad setting", []string{"check", bad, "--set", "x"}, exitUsage,
			[]string{"--set x: write --set key.path=value"}},
		{"nobody there", []string{"batch", "list"}, exitError, []string{"http://127.0.0.1:1",
			"is the daemon running? (see --server)"}},
		{"missing file", []string{"batch", "submit", "/nowhere.jsonl"}, exitError,
			[]string{"/nowhere.jsonl: no such file"}},
		{"no upstream", []string{"serve"}, exitError, []string{"no upstream", "--upstream URL"}},
		{"faulty configuration", []string{"serve", "--config", bad}, exitError, []string{
			"2 errors", "bad.yaml:2: unknown key flowcontrol.polcy; did you mean " +
				"flowcontrol.policy?",
			`bad.yaml:3: listen: "1" is not an address`,
		}},
		{"faulty flag", []string{"serve", "--upstream", "gpu-1"}, exitError,
			[]string{`--upstream: upstreams[0].url is "gpu-1", not a URL`}},
		{"faulty policy", []string{"serve", "--upstream", "http://a", "--set",
			"scheduler.policy=best"}, exitError,
			[]string{"--set scheduler.policy: scheduler.policy: "}},
		{"open to the world", []string{"serve", "--config", exposed}, exitError,
			[]string{"there are no API keys", "TIDEFILL_API_KEYS", "--insecure-no-auth"}},
		{"flags over settings", []string{"serve", "--listen", "0.0.0.0:0", "--set",
			"listen=127.0.0.1:0", "--upstream", "http://a"}, exitError,
			[]string{"listen is 0.0.0.0:0"}},
		{"settings over the file", []string{"serve", "--config", exposed, "--set",
			"listen=0.0.0.0:7"}, exitError, []string{"listen is 0.0.0.0:7"}},
		{"unknown profile", []string{"runner", "emulate", "--profile", "b300"}, exitUsage,
			[]string{`profile is "b300"`, "instant"}},
		{"unknown fault", []string{"runner", "emulate", "--faults", `{"flood": 1}`}, exitUsage,
			[]string{"flood"}},
		{"demo for the world", []string{"demo", "--listen", ":8080"}, exitUsage,
			[]string{"loopback"}},
		{"demo without lines", []string{"demo", "--lines", "0"}, exitUsage,
			[]string{"--lines is 0"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := must(t, test.status, test.args...)
			for _, want := range test.want {
				if !strings.Contains(got.errors, want) {
					t.Errorf("standard error lacks %q:\n%s", want, got.errors)
				}
			}
		})
	}
}

func TestCheckFiles(t *testing.T) {
	sound := writeFile(t, "sound.jsonl", apptest.BatchFile(3))
	if got := must(t, exitOK, "check", sound); !strings.Contains(got.out, "3 lines") ||
		!strings.Contains(got.out, "model m: 3 lines") {
		t.Errorf("summary of a sound file:\n%s", got.out)
	}
	faulty := writeFile(t, "faulty.jsonl", apptest.BatchFile(1)+"\n{\n"+apptest.BatchFile(1)+
		`{"custom_id":"e","method":"POST","url":"/v1/embeddings","body":{"model":"m","input":"x"}}`+"\n")
	got := must(t, exitError, "check", sound, faulty)
	for _, want := range []string{"faulty.jsonl:3: ", "faulty.jsonl:4: ", "(duplicate_custom_id)",
		"faulty.jsonl:5: ", "(url_mismatch)", "3 errors"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("check lacks %q:\n%s", want, got.out)
		}
	}
	if got := commandWith(t, "", "check", "-"); got.status != exitError ||
		!strings.Contains(got.out, "standard input") {
		t.Errorf("check of nothing: status %d\n%s", got.status, got.out)
	}
	configuration := writeFile(t, "c.yaml", "shutdown: {drain: 90s}\n")
	if got := must(t, exitOK, "check", configuration, "--set", "node=x"); !strings.Contains(got.out,
		"drain: 1m30s") || !strings.Contains(got.out, "node: x") {
		t.Errorf("effective configuration:\n%s", got.out)
	}
	must(t, exitError, "check", configuration, "--set", "nod=x")
	const note = "lists no upstreams and no pools: serve needs --upstream URL"
	if got := must(t, exitOK, "check", configuration); !strings.Contains(got.out, note) {
		t.Errorf("check of a configuration without upstreams lacks %q:\n%s", note, got.out)
	}
	for _, set := range []string{"upstreams=[{url: http://a}]",
		"pools=[{name: p, models: [m], max: 1}]"} {
		if got := must(t, exitOK, "check", configuration, "--set", set); strings.Contains(got.out,
			note) {
			t.Errorf("check of a configuration with %s says %q", set, note)
		}
	}
	if got := must(t, exitError, "check", configuration, "--set",
		"upstreams=[{url: http://a}, {url: http://a/v1}]"); !strings.Contains(got.out,
		"http://a/v1 is listed twice, first as http://a in upstreams[0]; remove one") {
		t.Errorf("check of a configuration with an upstream twice:\n%s", got.out)
	}
	secret := writeFile(t, "secret.yaml", "upstreams:\n- {url: 'http://me:TOPSECRET1@a', metrics: "+
		"'http://b/metrics?key=TOPSECRET2', headers: {Authorization: Bearer TOPSECRET3}}\n")
	if got := must(t, exitOK, "check", secret); strings.Contains(got.out, "TOPSECRET") ||
		!strings.Contains(got.out, "Authorization: (hidden)") ||
		!strings.Contains(got.out, "url: http://hidden@a") {
		t.Errorf("check of a configuration with secrets, which must be hidden:\n%s", got.out)
	}
	absent := writeFile(t, "absent.yaml", "node: x\ntelemetry: {signals: /nowhere.yaml}\n")
	if got := must(t, exitError, "check", absent); !strings.Contains(got.out,
		"absent.yaml:2: telemetry.signals: read signal map: open /nowhere.yaml: ") {
		t.Errorf("check of a configuration with an absent file:\n%s", got.out)
	}
}
