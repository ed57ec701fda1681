package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tidefill/tidefill/test/deploy/chart"
	"github.com/tidefill/tidefill/test/deploy/page"
)

const tenSteps = "../../docs/scale-from-zero.md"

// The values of the page can be installed, and the ScaledObject on it is the chart's.
func TestTenSteps(t *testing.T) {
	values, shown := "", []*unstructured.Unstructured(nil)
	for _, b := range page.Blocks(read(t, tenSteps)) {
		switch {
		case b.Language == "yaml" && strings.Contains(b.Text, "apiVersion:"):
			objects, err := chart.Decode(b.Text)
			if err != nil {
				t.Fatalf("row %d: %v", b.Row, err)
			}
			shown = append(shown, objects...)
		case b.Language == "yaml":
			values += b.Text
		}
	}
	checkAll(t, render(t, installed, values))
	checkAll(t, shown)
	objects := render(t, installed, values+"\nscaledObjects: {enabled: true}\n")
	checkAll(t, objects)
	for _, o := range shown {
		want := of(objects, o.GetKind())[0].DeepCopy()
		want.SetLabels(nil)
		if diff := cmp.Diff(want.Object, o.Object); diff != "" {
			t.Errorf("%s %s: -chart +page\n%s", o.GetKind(), o.GetName(), diff)
		}
	}
	existing, err := chart.Decode(read(t, manifestsDir+"vllm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	checkCommands(t, tenSteps, append(objects, existing...),
		map[string]string{"values.yaml": values})
}

// checkCommands checks the commands of a page: files exist, kubectl names objects that exist, helm
// renders, and tidefill accepts the arguments.
func checkCommands(t *testing.T, name string, objects []*unstructured.Unstructured,
	written map[string]string) {
	t.Helper()
	known := []string{"deployment/vllm", "service/vllm"} // of the user
	for _, o := range objects {
		known = append(known, strings.ToLower(o.GetKind())+"/"+o.GetName())
	}
	programs := map[string]int{}
	for _, b := range page.Blocks(read(t, name)) {
		if b.Language != "sh" {
			continue
		}
		for i, row := range strings.Split(b.Text, "\n") {
			row, _, _ = strings.Cut(row, " #")
			for _, part := range strings.FieldsFunc(row, func(r rune) bool {
				return strings.ContainsRune("|&()", r)
			}) {
				part = strings.TrimPrefix(strings.TrimSpace(part), "export ")
				words := strings.Fields(part)
				if len(words) == 0 {
					continue
				}
				program := filepath.Base(words[0])
				programs[program]++
				var fault string
				switch program {
				case "kubectl":
					fault = kubectlFault(words[1:], known)
				case "helm":
					fault = helmFault(t, words[1:], written)
				case "tidefill":
					fault = tidefillFault(t, words[1:])
				}
				for j, word := range words[:len(words)-1] {
					if word == "-f" && fault == "" && written[words[j+1]] == "" {
						if _, err := os.Stat(filepath.Join("../..", words[j+1])); err != nil {
							fault = err.Error()
						}
					}
				}
				if fault != "" {
					t.Errorf("%s:%d: %s: %s", name, b.Row+i, part, fault)
				}
			}
		}
	}
	for _, program := range []string{"kubectl", "helm", "tidefill"} {
		if programs[program] == 0 {
			t.Errorf("%s has no command of %s", name, program)
		}
	}
}

// kubectlFault reports an object, written as KIND/NAME or get KIND NAME, that does not exist.
func kubectlFault(words, known []string) string {
	if i := slices.Index(words, "-n"); i >= 0 {
		if words[i+1] != installed.Namespace {
			return "the namespace is " + words[i+1]
		}
		words = slices.Delete(slices.Clone(words), i, i+2)
	}
	if i := slices.Index(words, "--"); i >= 0 {
		words = words[:i]
	}
	if len(words) > 2 && slices.Contains([]string{"get", "delete", "describe"}, words[0]) &&
		!strings.Contains(words[1], "/") {
		words = []string{words[1] + "/" + words[2]}
	}
	for _, word := range words {
		kind, object, ok := strings.Cut(word, "/")
		if ok && kind != "deploy" && !slices.Contains(known, kind+"/"+object) {
			return "there is no " + word
		}
	}
	return ""
}

// helmFault renders what a command installs. Charts of others are not looked at.
func helmFault(t *testing.T, words []string, written map[string]string) string {
	if words[0] != "install" && words[0] != "upgrade" || words[1] == "keda" {
		return ""
	}
	values := written["values.yaml"]
	for i, word := range words {
		if word != "--set" {
			continue
		}
		path, value, _ := strings.Cut(words[i+1], "=")
		for _, key := range slices.Backward(strings.Split(path, ".")) {
			value = "{" + key + ": " + value + "}"
		}
		values += "\n" + value[1:len(value)-1] + "\n"
	}
	if i := slices.Index(words, "--namespace"); i < 0 || words[i+1] != installed.Namespace {
		return "the namespace is missing"
	}
	r := chart.Release{Name: words[1], Namespace: installed.Namespace}
	files, err := r.Render(filepath.Join("../..", words[2]), values)
	if err != nil {
		return err.Error()
	}
	objects, err := chart.Objects(files)
	if err != nil {
		return err.Error()
	}
	checkAll(t, objects)
	return ""
}

// tidefillFault parses the arguments of a command without running it.
func tidefillFault(t *testing.T, words []string) string {
	c := exec.Command(binary(t), append(slices.Clone(words), "--help")...)
	if output, err := c.CombinedOutput(); err != nil {
		return string(output)
	}
	return ""
}

// Pages of the documentation with values, manifests or configurations.
func TestPages(t *testing.T) {
	eachFile(t, "../../docs/*.md", func(t *testing.T, name, text string) {
		if !slices.Contains([]string{"keda", "deploy", "kubernetes"}, name) {
			t.SkipNow()
		}
		for _, b := range page.Blocks(text) {
			switch {
			case b.Language != "yaml":
			case strings.Contains(b.Text, "apiVersion:"):
				objects, err := chart.Decode(b.Text)
				if err != nil {
					t.Errorf("row %d: %v", b.Row, err)
				}
				checkAll(t, objects)
			case strings.HasPrefix(b.Text, "config:"):
				checkAll(t, render(t, installed, b.Text))
			case strings.HasPrefix(b.Text, " "): // a part of another block
			default:
				var keys map[string]any
				if err := yaml.Unmarshal([]byte(b.Text), &keys); err != nil {
					t.Errorf("row %d: %v", b.Row, err)
				}
				checkConfig(t, name, b.Text)
			}
		}
	})
}
