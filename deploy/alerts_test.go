package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/internal/testservers"
)

const (
	rulesFile = "prometheus/alerts.yaml"
	casesFile = "prometheus/alerts_test.yaml"
	runbook   = "https://github.com/tidefill/tidefill/blob/main/docs/alerts.md#"
)

// alert is a rule of rulesFile.
type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func alerts(t *testing.T) (all []alert) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	read(t, rulesFile, &file)
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no rules", rulesFile)
	}
	return all
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func TestPromtoolAcceptsTheRules(t *testing.T) {
	promtool(t, exec.Command(testservers.Path(t, "promtool"), "check", "rules", rulesFile))
}

// Each alert fires in one case and is silent in another.
func TestRulesFireWhenTheyShall(t *testing.T) {
	promtool(t, exec.Command(testservers.Path(t, "promtool"), "test", "rules", casesFile))

	var file struct{ Tests []struct{ Name string } }
	read(t, casesFile, &file)
	cases := map[string]bool{}
	for _, c := range file.Tests {
		name, _, _ := strings.Cut(c.Name, ":")
		cases[name] = true
	}
	for _, a := range alerts(t) {
		for _, behaviour := range []string{"fires", "is silent"} {
			if !cases[a.Alert+" "+behaviour] {
				t.Errorf("no case in which %s %s", a.Alert, behaviour)
			}
		}
	}
}

func TestAlertsSayWhatToDo(t *testing.T) {
	page, err := os.ReadFile("../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range alerts(t) {
		for _, key := range []string{"summary", "description"} {
			if a.Annotations[key] == "" {
				t.Errorf("%s has no %s", a.Alert, key)
			}
		}
		want := runbook + strings.ToLower(a.Alert)
		if got := a.Annotations["runbook_url"]; got != want {
			t.Errorf("%s has the runbook %s, want %s", a.Alert, got, want)
		}
		if s := a.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s has the severity %q", a.Alert, s)
		}
		if !strings.Contains(string(page), fmt.Sprintf("\n## %s\n", a.Alert)) {
			t.Errorf("docs/alerts.md has no section %s", a.Alert)
		}
	}
}

func TestRulesUseMetricsThatExist(t *testing.T) {
	k := knownMetrics(t)
	for _, a := range alerts(t) {
		for _, fault := range k.faults(a.Expr) {
			t.Errorf("%s: %s", a.Alert, fault)
		}
	}
}
