package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/registry"
)

// template returns a template in a row of a list.
func template(name string) string {
	return `- name: ` + name + `
  spec:
    engine: {type: vllm, version: "0.11.0", image: "vllm/vllm-openai:v0.11.0"}
    model_source: {type: huggingface, uri: org/model}
    accelerator: {type: H100-SXM, count: 4}
    parallelism: {tp: 4}
    supported_endpoints: [/v1/chat/completions]
`
}

const profileItems = `items:
- name: day
  spec: {scheduling: {priority: low}}
- name: night
`

func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}

// Each document of the registry is recognized, and each fault of it has its row.
func TestCheckTemplatesAndProfiles(t *testing.T) {
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n" +
		"  templates.yaml: |\n" + indented(template("a"))
	for _, test := range []struct {
		what, text string
		status     int
		want       string // FILE is the file's name
	}{
		{"templates", template("a") + template("b"), exitOK,
			"FILE is valid: 2 templates, 0 profiles.\n"},
		{"profiles", "default: day\n" + profileItems, exitOK,
			"FILE is valid: 0 templates, 2 profiles.\n"},
		{"a ConfigMap of both", manifest + "  profiles.yaml: |\n" + indented(profileItems), exitOK,
			"FILE is valid: 1 template, 2 profiles.\n"},
		{"several documents", manifest + "---\n" + profileItems, exitOK,
			"FILE is valid: 1 template, 2 profiles.\n"},
		{"a warning", template("a") + "    service_id: x\n", exitOK,
			"FILE:1: warning: template a@v1.0.0: spec.service_id has no effect\n" +
				"FILE is valid: 1 template, 0 profiles.\n"},
		{"all faults of an item", "- name: a\n  status: off\n  spec: {accelerator: {count: 1}}\n",
			exitError, "FILE:3: spec.engine.type: is required, one of vllm, sglang, trtllm, " +
				"lmdeploy, mock, vipe\n"},
		{"two faults and another item", strings.Replace(template("a"), "vllm,", "vlm,", 1) +
			"    deployment_mode: rented\n" + template("b"), exitError,
			"FILE:3: spec.engine.type: is \"vlm\", must be one of vllm, sglang, trtllm, " +
				"lmdeploy, mock, vipe\n" +
				"FILE:8: spec.deployment_mode: is \"rented\", must be one of dedicated, shared, " +
				"external\n"},
		{"a fault between items", template("a") + template("a"), exitError,
			"FILE:8: template a@v1.0.0: stands here twice, and the first one counts; remove one\n"},
		{"a default that is none", "default: dai\n" + profileItems, exitError,
			"FILE:1: default: there is no profile \"dai\" in force\n"},
		{"a mixed file", template("a") + "---\nx: 1\n", exitError,
			"FILE:9: " + registry.Unrecognized + "\n"},
		{"a configuration", "listen: 127.0.0.1:0\nitems: []\n", exitError,
			"FILE:2: unknown key items"},
		{"an unclear file", "metadata: {}\n", exitError,
			"FILE: has no key of the daemon's configuration, and " + registry.Unrecognized +
				"; as a configuration, it has these faults:\nFILE:1: unknown key"},
		{"an item without a list", "name: a\nspec: {}\n", exitError,
			"a template, a profile or a set of use cases must be an item of a list\n"},
		{"a syntax fault", "- name: [\n", exitError, "FILE:1: did not find"},
	} {
		t.Run(test.what, func(t *testing.T) {
			name := writeFile(t, "any.yaml", test.text)
			got := must(t, test.status, "check", name)
			want := strings.ReplaceAll(test.want, "FILE", name)
			whole := strings.HasSuffix(want, ".\n") || strings.Contains(test.what, "two faults")
			if whole && got.out != want || !strings.Contains(got.out, want) {
				t.Errorf("got\n%s\nwant\n%s", got.out, want)
			}
		})
	}
}

// The files of one call are judged together, and a check of one prints JSON.
func TestCheckOfSeveralFilesOfTheRegistry(t *testing.T) {
	first := writeFile(t, "a.yaml", "default: night\n")
	second := writeFile(t, "b.yaml", profileItems)
	must(t, exitError, "check", first)
	got := must(t, exitOK, "check", first, second, second)
	if want := first + " is valid: 0 templates, 0 profiles.\n"; !strings.HasPrefix(got.out, want) {
		t.Errorf("together: %s", got.out)
	}
	faulty := writeFile(t, "c.yaml", template("a")+"    size: 1\n    mode: 2\n")
	var list struct {
		File   string
		Valid  bool
		Faults []registryFinding
	}
	text := must(t, exitError, "check", "--json", faulty).out
	if err := json.Unmarshal([]byte(text), &list); err != nil || list.Valid ||
		list.File != faulty || len(list.Faults) != 2 || list.Faults[1].Row != 9 ||
		list.Faults[1].Path != "spec.mode" || list.Faults[1].Name != "a" {
		t.Errorf("got %s, %v", text, err)
	}
}

// The examples are what documents of users begin with.
func TestExamplesOfTheRegistryAreValid(t *testing.T) {
	const dir = "../../deploy/examples/registry/"
	got := must(t, exitOK, "check", dir+"templates.yaml", dir+"profiles.yaml",
		dir+"usecases.yaml")
	want := dir + "templates.yaml is valid: 4 templates, 0 profiles.\n" + dir +
		"profiles.yaml is valid: 0 templates, 3 profiles.\n" + dir +
		"usecases.yaml is valid: 0 templates, 0 profiles, 1 use case set.\n"
	if got.out != want {
		t.Errorf("got\n%s\nwant\n%s", got.out, want)
	}
}
