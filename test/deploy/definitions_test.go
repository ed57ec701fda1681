package deploy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// crdsDir has the custom resource definitions that Helm installs with the chart.
const crdsDir = "../../deploy/helm/tidefill/crds/"

// The plain manifest of the custom resource definitions is what the chart has.
func TestManifestsOfTheDefinitions(t *testing.T) {
	files, err := filepath.Glob(crdsDir + "*.yaml")
	if err != nil || len(files) != 2 {
		t.Fatalf("definitions %q, %v", files, err)
	}
	var want strings.Builder
	want.WriteString("# Generated from deploy/helm/tidefill/crds by make manifests.\n")
	for _, file := range files {
		want.WriteString("---\n" + read(t, file))
	}
	name := manifestsDir + "crds.yaml"
	if *update {
		if err := os.WriteFile(name, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, name) != want.String() {
		t.Errorf("%s is not current; run make manifests", name)
	}
}
