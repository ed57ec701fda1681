package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/config"
)

// Each fault of an endpoint names the entry, and nothing that may be a secret is shown.
func TestFaultsOfWebhooks(t *testing.T) {
	_, err := config.Parse("f.yaml", []byte(`
webhooks:
  - {name: ops, url: "https://a/x?token=t0ken", secret_env: A}
  - {name: ops, url: "https://me:p4ss@a/", secret_env: A}
  - {name: b, url: "https://b/", events: [batch.done]}
`))
	var got []string
	for _, fault := range config.Faults(err) {
		got = append(got, fault.Error())
	}
	want := []string{
		`f.yaml:4: webhooks[1].url: has a user or a password, which would be shown; check the ` +
			`signature instead`,
		`f.yaml:4: webhooks[1].name: endpoint 0 is named "ops" too; give each endpoint a name of ` +
			`its own`,
		`f.yaml:5: webhooks[2].secret_env: is empty; name the environment variable that holds the secret`,
		`f.yaml:5: webhooks[2].events[0]: there is no event "batch.done"; there are ` +
			`batch.completed, batch.failed, batch.expired, batch.cancelled, batch.at_risk, ` +
			`batch.infeasible, batch.feasible, batch.stalled, batch.resumed.`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	cfg, err := config.Parse("f.yaml", []byte(`
webhooks: [{name: ops, url: "https://a/x?token=t0ken", secret_env: A}]
`))
	if err != nil {
		t.Fatal(err)
	}
	if shown, err := cfg.ShownYAML(); err != nil || strings.Contains(string(shown), "t0ken") ||
		!strings.Contains(string(shown), "https://a/x") {
		t.Errorf("%v:\n%s", err, shown)
	}
}
