package deploy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const alertsFile = "../../deploy/prometheus/alerts.yaml"

// A chart holds its files, so it has a copy of the alert rules.
func TestAlertsOfTheChart(t *testing.T) {
	alerts := read(t, alertsFile)
	generated(t, chartDir+"/files/alerts.yaml", []byte(alerts))
	rules := of(render(t, installed, read(t, "testdata/values/everything.yaml")),
		"PrometheusRule")
	if len(rules) != 1 {
		t.Fatalf("%d PrometheusRules", len(rules))
	}
	var want any
	if err := yaml.Unmarshal([]byte(alerts), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, nested(rules[0], "spec")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
