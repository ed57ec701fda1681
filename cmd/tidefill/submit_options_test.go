package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/apptest"
)

// allOptions sets every flag that becomes an extension.
func allOptions(t *testing.T) []string {
	return []string{"--deadline", "2h", "--start-by", "1h", "--priority", "-3",
		"--max-concurrency", "7", "--group-by", "none", "--retry-attempts", "4",
		"--retry-on", "500,503", "--max-failed-lines", "0", "--max-failed-ratio", "0.25",
		"--max-total-tokens", "100000", "--canary", "1", "--canary-max-failed-ratio", "0",
		"--check-pattern", "x|^", "--check-finish", "stop,length", "--check-attempts", "3",
		"--defaults", `{"temperature": 0}`,
		"--overrides", "@" + writeFile(t, "o.json", `{"all": {"top_k": 4}}`),
		"--outputs", "per_input", "--admission", "strict", "--template", "t@v1",
		"--engine-args", `{"max_num_seqs": 8}`, "--profile", "p", "--scheduling",
		`{"max_concurrency": 9}`, "--service-tier", "auto"}
}

// registryOf returns a directory with a template t and a profile p.
func registryOf(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"templates.yaml": `
- name: t
  version: v1
  spec:
    engine: {type: vllm, version: "1", image: i}
    model_source: {type: local, uri: m}
    accelerator: {type: cpu, count: 1}
    supported_endpoints: [/v1/chat/completions]
    deployment_mode: shared
`,
		"profiles.yaml": "items: [{name: p, spec: {scheduling: {retry_policy: {max_retries: 9}}}}]",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// ofBuckets are the extensions that need a bucket; see TestSubmitInABucket.
var ofBuckets = []string{"input_url", "output_url", "csv"}

// A new extension of the API needs a field of the client and a flag.
func TestSubmitReachesEveryExtension(t *testing.T) {
	cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, nil))
	cfg.Registry.Dir = registryOf(t)
	startDaemonWith(t, cfg, app.Options{})
	first := writeFile(t, "first.jsonl", apptest.BatchFile(3))
	second := writeFile(t, "second.jsonl", apptest.BatchFile(2))
	got := must(t, exitOK, append([]string{"batch", "submit", first, second, "--wait", "--json",
		"--output-expires-after", "2h"}, allOptions(t)...)...)
	var b struct {
		client.Batch
		Tidefill struct {
			Options map[string]json.RawMessage
			Outputs []client.ResultFiles
			Inputs  []string `json:"input_file_ids"`
		}
	}
	if err := json.Unmarshal([]byte(got.out), &b.Batch); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Raw, &struct{ Tidefill any }{&b.Tidefill}); err != nil {
		t.Fatal(err)
	}
	if b.Counts.Completed != 5 || len(b.Tidefill.Inputs) != 2 || len(b.Tidefill.Outputs) != 2 {
		t.Errorf("got %+v, inputs %v, outputs %v", b.Counts, b.Tidefill.Inputs, b.Tidefill.Outputs)
	}
	fields := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[client.RequestExtensions]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = true
	}
	for _, key := range api.ExtensionKeys() {
		if !fields[key] {
			t.Errorf("client.RequestExtensions has no field for %s", key)
		}
		delete(fields, key)
		if slices.Contains(ofBuckets, key) {
			continue
		}
		if _, sent := b.Tidefill.Options[key]; !sent {
			t.Errorf("no flag of batch submit sets %s; it sent %v", key, b.Tidefill.Options)
		}
	}
	if len(fields) > 0 {
		t.Errorf("the API does not know %v", fields)
	}
	for key, want := range map[string]string{
		"deadline": `"2h"`, "start_by": `"1h"`, "priority": "-3", "max_concurrency": "7",
		"group_by": `"none"`, "retry": `{"attempts":4,"on":[500,503]}`, "max_failed_lines": "0",
		"max_failed_ratio": "0.25", "max_total_tokens": "100000", "outputs": `"per_input"`,
		"canary": `{"lines":1,"max_failed_ratio":0}`, "defaults": `{"temperature":0}`,
		"overrides": `{"all":{"top_k":4}}`,
		"check":     `{"finish_reason":["stop","length"],"pattern":"x|^","attempts":3}`,
		"registry": `{"model_template":{"name":"t","version":"v1",` +
			`"overrides":{"engine_args":{"max_num_seqs":8}}},` +
			`"profile":{"name":"p","overrides":{"scheduling":{"max_concurrency":9}}}}`,
	} {
		if got := string(b.Tidefill.Options[key]); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
}

func TestSubmitHelpGroupsAllFlags(t *testing.T) {
	got := must(t, exitOK, "batch", "submit", "--help")
	other := strings.Index(got.out, "\nOther flags:")
	for _, key := range api.ExtensionKeys() {
		flag := "--" + strings.ReplaceAll(key, "_", "-")
		if slices.Contains([]string{"input_file_ids", "input_url", "csv", "retry", "registry",
			"check"}, key) {
			continue // arguments; several flags
		}
		if at := strings.Index(got.out, flag+" "); at < 0 || at > other {
			t.Errorf("the help has no %s in a group", flag)
		}
	}
	if n := strings.Count(got.out, "--server"); n != 1 || other < 0 {
		t.Errorf("--server is listed %d times:\n%s", n, got.out)
	}
	for _, values := range [][]string{{"--outputs", "per_input", "--admission", "strict"},
		{"--group-by", "prefix"},
		{"--endpoint", "/v1/embeddings"}, {"--window", "24h"}} {
		got := must(t, exitOK, "__complete", "batch", "submit", "x.jsonl", values[0], "")
		if !strings.Contains(got.out, values[1]+"\n") {
			t.Errorf("%s completes to %s", values[0], got.out)
		}
	}
}

func TestSubmitRefusesBeforeItUploads(t *testing.T) {
	t.Setenv("TIDEFILL_SERVER", "http://127.0.0.1:1")
	input := writeFile(t, "in.jsonl", apptest.BatchFile(1))
	rows, body := writeFile(t, "rows.csv", "a\n1\n"), writeFile(t, "body.json", `{"a": "{{a}}"}`)
	for want, args := range map[string][]string{
		"is named twice":                    {input, input},
		"is a directory; name its files":    {t.TempDir()},
		"no such file":                      {input, "/nowhere.jsonl"},
		"--canary-max-failed-ratio needs":   {input, "--canary-max-failed-ratio", "0.1"},
		"--check-attempts needs":            {input, "--check-attempts", "3"},
		"--check-schema: write a JSON":      {input, "--check-schema", "type"},
		"--max-concurrency must be above 0": {input, "--max-concurrency", "0"},
		"--defaults: write a JSON object":   {input, "--defaults", "temperature=0"},
		"--overrides: write a JSON object":  {input, "--overrides", "null"},
		"open /nowhere.json":                {input, "--overrides", "@/nowhere.json"},
		"--csv-id needs --csv-body":         {input, "--csv-id", "id"},
		"is for files whose names end":      {input, "--csv-body", body},
		"is a CSV file; say by --csv-body":  {rows},
		"{{ without }}": {rows, "--csv-body", writeFile(t, "b.json",
			`{"a": "{{"}`)},
	} {
		got := command(t, append([]string{"batch", "submit"}, args...)...)
		if got.status == exitOK || !strings.Contains(got.errors, want) ||
			strings.Contains(got.errors, "daemon running") {
			t.Errorf("%v: status %d, %s; want %q", args, got.status, got.errors, want)
		}
	}
}

// The emulated runner answers words, which are no JSON.
func TestSubmitWithACheckOfAnswers(t *testing.T) {
	startDaemonWith(t, apptest.Config(t.TempDir(), apptest.StartRunner(t, nil)), app.Options{})
	input := writeFile(t, "in.jsonl", apptest.BatchFile(3))
	schema := writeFile(t, "schema.json", `{"type": "object"}`)
	submit := []string{"batch", "submit", input, "--check-schema", "@" + schema}
	for _, dry := range [][]string{nil, {"--dry-run"}} {
		got := command(t, append(append(submit, "--check-pattern", "("), dry...)...)
		if got.status == exitOK || !strings.Contains(got.errors, "tidefill.check.pattern") {
			t.Errorf("%v: status %d, %s", dry, got.status, got.errors)
		}
	}
	got := command(t, append(submit, "--wait")...)
	for _, want := range []string{"0 completed, 3 failed", "requests   6 sent",
		"check      json_schema\n", `3 × 200 check_failed "json_schema: the text is not JSON`} {
		if !strings.Contains(got.out, want) {
			t.Errorf("got status %d, %s%s, want %q in it", got.status, got.out, got.errors, want)
		}
	}
}
