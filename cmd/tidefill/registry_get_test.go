package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/registry"
)

// odd has every kind of value that a document may have, and texts that look like other types.
const odd = `- name: "odd: #1"
  version: "1.10"
  status: draft
  description: "yes"
  visible_to: [a, "0x10"]
  spec:
    engine: {type: vllm, version: "0.11", image: "null", serve_args: ["--port=8000", "7", "", "~"]}
    model_source: {type: huggingface, uri: "org/m\nodel", revision: "1e3"}
    accelerator: {type: H100-SXM, count: 4, vram_gb: 80}
    parallelism: {tp: 4, ep: 2, experts_share_ranks: true}
    engine_args: {max_num_seqs: 256, gpu_memory_utilization: 1, enable_prefix_caching: false,
      whole: 3.0, n: 3, text: "3", flag: true, none: null, empty: "", list: [1, "1", 1.5],
      table: {b: {c: "off"}}}
    overrides_allowed: {engine_args: {}}
    quantization: {weight: fp8}
    provider_config: {type: k8s, namespace: "2026-01-01"}
    supported_endpoints: [/v1/chat/completions]
    deployment_mode: shared
- name: bounded
  spec:
    engine: {type: mock, version: "1", image: x}
    model_source: {type: local, uri: /m}
    accelerator: {type: cpu, count: 1}
    overrides_allowed: {engine_args: {max_num_seqs: {min: 1.5, max: 512}, seed: {}}}
    supported_endpoints: [/v1/embeddings]
- name: broken
  spec: {engine: {type: tgi}}
`

const twoProfiles = `default: night
items:
- name: night
  spec:
    storage: {backend: local, bucket: /results}
    scheduling: {completion_window: best_effort, retry_policy: {max_retries: 0}}
    openai_service_tier_alias: flex
- name: day
  visible_to: [a]
`

// startRegistry runs a daemon with documents, and makes its admin address the default of commands.
func startRegistry(t *testing.T, documents map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range documents {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, nil))
	cfg.Registry.Dir = dir
	a, _ := startDaemonWith(t, cfg, app.Options{})
	t.Setenv("TIDEFILL_ADMIN", a.AdminURL())
	return dir
}

func readDocument(name, text string) *registry.Catalogs {
	return new(registry.Catalogs).Next(time.Time{}, []registry.Document{{Name: name,
		Text: []byte(text)}})
}

// What get prints as a document is read as the same items.
func TestItemsThatArePrintedAreReadAgain(t *testing.T) {
	startRegistry(t, map[string]string{"t.yaml": odd, "p.yaml": twoProfiles})
	text := must(t, exitOK, "get", "templates", "-o", "yaml").out
	want, got := readDocument("t.yaml", odd), readDocument("printed", text)
	if len(got.Refused()) > 0 || len(got.Templates()) != 2 {
		t.Fatalf("refused %v of\n%s", got.Refused(), text)
	}
	for i, e := range want.Templates() {
		if diff := cmp.Diff(e.Item, got.Templates()[i].Item); diff != "" {
			t.Errorf("%v (-want +got)\n%s", e.Item.Key(), diff)
		}
	}
	text = must(t, exitOK, "get", "profiles", "-o", "yaml").out
	want, got = readDocument("p.yaml", twoProfiles), readDocument("printed", text)
	if len(got.Refused()) > 0 || got.Standard() != "night" || len(got.Profiles()) != 2 {
		t.Fatalf("refused %v of\n%s", got.Refused(), text)
	}
	for i, e := range want.Profiles() {
		if diff := cmp.Diff(e.Item, got.Profiles()[i].Item); diff != "" {
			t.Errorf("%v (-want +got)\n%s", e.Item.Key(), diff)
		}
	}
	one := must(t, exitOK, "get", "template/bounded@v1.0.0", "-o", "yaml").out
	if !strings.HasPrefix(one, "- name: bounded\n") || strings.Contains(one, "odd") {
		t.Errorf("one template:\n%s", one)
	}
}

func TestGetItems(t *testing.T) {
	dir := startRegistry(t, map[string]string{"t.yaml": odd + strings.Replace(template("big"),
		"  spec:", "  version: v2\n  spec:", 1) + template("big") + "    service_id: x\n",
		"p.yaml": twoProfiles})
	place := dir + "/t.yaml:"
	for _, test := range []struct {
		args   string
		status int
		out    string // empty: nothing
		errors string // part; empty: nothing
	}{
		{"get templates", exitOK, `NAME     VERSION  STATUS  MODEL      ACCELERATOR   MODE       WARNINGS
big      v1.0.0   active  org/model  4 x H100-SXM  dedicated  1
big      v2       active  org/model  4 x H100-SXM  dedicated  -
bounded  v1.0.0   active  /m         cpu           dedicated  -
odd: #1  1.10  draft  org/m�odel  4 x H100-SXM  shared  -
`, "Refused:\n  " + place + "27: template broken@v1.0.0: spec.engine.type: is \"tgi\", "},
		{"get template big", exitOK, "NAME VERSION STATUS MODEL ACCELERATOR MODE WARNINGS\n" +
			"big v1.0.0 active org/model 4 x H100-SXM dedicated 1\n" +
			"big v2 active org/model 4 x H100-SXM dedicated -\n",
			"is active in the versions v1.0.0, v2; users must name one"},
		{"get templates/big@v2 bounded", exitUsage, "", `"bounded"; give templates, profiles or usecases`},
		{"get templates/big@v2 template/bounded -o name", exitOK,
			"template/big@v2\ntemplate/bounded@v1.0.0\n", ""},
		{"get profiles", exitOK, `NAME WINDOW PRIORITY MAX CONCURRENCY TIER ALIAS DEFAULT
day 24h normal 256 - -
night best_effort normal 256 flex yes
`, ""}, // what is refused of templates is no concern of profiles
		{"get profile night -o wide", exitOK, "NAME WINDOW PRIORITY MAX CONCURRENCY TIER ALIAS " +
			"DEFAULT STORAGE MAX REQUESTS MAX INPUT MAX OUTPUT VISIBLE TO DOCUMENT\n" +
			"night best_effort normal 256 flex yes local:/results 50000 200 MB 10 GB - " + dir +
			"/p.yaml:3\n", ""},
		{"get template bgi", exitError, "", `no template "bgi"; did you mean big?`},
		{"get template big@v3", exitError, "", `no version "v3"; did you mean v2?`},
		{"get template broken", exitError, "", `template "broken" is refused: ` + place + "27: spec"},
		{"get profile noon", exitError, "", `no profile "noon"`},
		{"describe profile nigth", exitError, "", `did you mean night?`},
		{"get tempalte", exitUsage, "", "did you mean template?"},
		{"get templates -o xml", exitUsage, "", "give one of json, yaml, wide, name"},
		{"get templates -o yaml --json", exitUsage, "", "exclude each other"},
		{"describe templates", exitUsage, "", "give the name of a template"},
		{"get", exitUsage, "", "at least 1 arg"},
		{"get templates --admin http://127.0.0.1:1", exitError, "", "admin_listen"},
	} {
		got := must(t, test.status, strings.Fields(test.args)...)
		if fields(got.out) != fields(test.out) {
			t.Errorf("%s prints\n%s\nwant\n%s", test.args, got.out, test.out)
		}
		if !strings.Contains(got.errors, test.errors) || test.errors == "" && got.errors != "" {
			t.Errorf("%s: %s\nlacks %s", test.args, got.errors, test.errors)
		}
	}
	text := must(t, exitOK, "get", "templates", "-o", "json").out
	if strings.Count(text, "\n") != 4 || text != must(t, exitOK, "get", "templates", "--json").out {
		t.Errorf("-o json prints %.300s", text)
	}
	if one := must(t, exitOK, "get", "profile/day", "-o", "json").out; !strings.HasPrefix(one,
		`{"name":"day",`) {
		t.Errorf("-o json of one prints %.300s", one)
	}
	text = must(t, exitOK, "describe", "template", "bounded").out
	for _, want := range []string{"Overrides:    max_num_seqs (1.5 to 512), seed\n",
		"Visible to:   all tenants\n", "Document:     " + place + "19\n", "    type: mock\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("describe lacks %q:\n%s", want, text)
		}
	}
	if text := must(t, exitOK, "describe", "profile/night").out; !strings.Contains(text,
		"Default:      yes\n") || !strings.Contains(text, "    max_retries: 0\n") {
		t.Errorf("describe of a profile:\n%s", text)
	}
	for words, want := range map[string]string{"get|": "templates\nprofiles\nusecases\n",
		"get|templates|bo": "big\nbig@v1.0.0\nbig@v2\nbounded\nbounded@v1.0.0\n" +
			"odd: #1\nodd: #1@1.10\n",
		"describe|profile|day|": "night\n", "get|profile/": "profile/day\nprofile/night\n"} {
		args := append([]string{"__complete"}, strings.Split(words, "|")...)
		if got := must(t, exitOK, args...).out; got != want+":4\n" {
			t.Errorf("completion of %q: %q", words, got)
		}
	}
}

// fields returns rows with one space between their words.
func fields(text string) string {
	var rows []string
	for row := range strings.Lines(text) {
		rows = append(rows, strings.Join(strings.Fields(row), " "))
	}
	return strings.Join(rows, "\n")
}

func TestGetWithoutItems(t *testing.T) {
	startRegistry(t, map[string]string{"t.yaml": strings.Replace(template("secret"), "image:",
		"serve_args: [--api-key=TOPSECRET], image:", 1)})
	got := must(t, exitOK, "get", "profiles")
	if got.out != "" || got.errors != "No profiles.\n" {
		t.Errorf("got %+v", got)
	}
	if got := must(t, exitOK, "get", "profiles", "-o", "yaml"); got.out != "items: []\n" {
		t.Errorf("as a document: %+v", got)
	}
	if got := must(t, exitError, "get", "profile", "x"); !strings.Contains(got.errors,
		`there is no profile "x"; there is none at all`) {
		t.Errorf("one: %+v", got)
	}
	// A document without its secrets must not be applied as it is.
	got = must(t, exitOK, "get", "templates", "-o", "yaml")
	if strings.Contains(got.out+got.errors, "TOPSECRET") || !strings.Contains(got.out,
		"--api-key=***") || !strings.Contains(got.errors, "put them back before") {
		t.Errorf("with a secret: %+v", got)
	}
}

// A daemon may show an item whose document has a fault now, a source that is away, and nothing at
// all yet.
func TestGetWhatIsNotInForce(t *testing.T) {
	answer := `{"object": "registry", "unknown": null, "templates": [{"name": "big", "version": "v1",
		"status": "active", "kept": true, "document": "t.yaml", "row": 3, "spec": {"model_source":
		{"uri": "m"}, "accelerator": {"count": 2, "type": "H100"}, "deployment_mode": "shared"}}],
		"profiles": [], "refused": [{"kind": "template", "name": "big", "version": "v1", "document":
		"t.yaml", "row": 7, "path": "spec.x", "text": "is bad", "kept": true, "age_seconds": 90},
		{"kind": "document", "document": "p.yaml", "text": "is no regular file"}],
		"sources": [{"name": "cluster", "error": "is away"}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, answer)
	}))
	defer server.Close()
	t.Setenv("TIDEFILL_ADMIN", server.URL)
	got := must(t, exitOK, "get", "templates")
	want := "The source cluster can't be read: is away. What was read last stays in force.\n" +
		"Refused:\n  t.yaml:7: template big@v1: spec.x: is bad; the last good version stays in " +
		"force, for 1m30s\n  p.yaml: is no regular file; not in force, for 0s\n"
	if !strings.Contains(got.out, "active (last good)") || !strings.HasPrefix(got.errors, want) {
		t.Errorf("got %s\n%s", got.out, got.errors)
	}
	got = must(t, exitOK, "describe", "template", "big")
	for _, want := range []string{"Refused:      t.yaml:7: template big@v1: spec.x: is bad",
		"This is the last good version."} {
		if !strings.Contains(got.out, want) {
			t.Errorf("describe lacks %q:\n%s", want, got.out)
		}
	}
	answer = `{"unknown": "no permission", "templates": [], "profiles": []}`
	if got := must(t, exitError, "get", "templates"); !strings.Contains(got.errors,
		"it is not known yet which templates are in force: no permission") {
		t.Errorf("unknown: %s", got.errors)
	}
	answer = `{"templates": [{"name": "big", "spec": {"wings": 2}}]}`
	must(t, exitOK, "get", "templates")
	if got := must(t, exitError, "get", "templates", "-o", "yaml"); !strings.Contains(got.errors,
		"spec.wings: unknown key") || !strings.Contains(got.errors, "use the release of the") {
		t.Errorf("a field of a later release: %s", got.errors)
	}
}
