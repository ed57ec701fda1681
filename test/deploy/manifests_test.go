package deploy_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidefill/tidefill/test/deploy/chart"
)

const manifestsDir = "../../deploy/kubernetes/"

// The plain manifests are the chart with the values.yaml beside them.
func TestManifestsAreThoseOfTheChart(t *testing.T) {
	for _, dir := range []string{manifestsDir, clusterDir} {
		checkGenerated(t, dir)
	}
}

func checkGenerated(t *testing.T, dir string) {
	t.Helper()
	const note = "# Generated from the chart deploy/helm/tidefill with values.yaml by make " +
		"manifests; docs/deploy.md says how to apply it.\n"
	files, err := installed.Render(chartDir, read(t, dir+"values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for _, f := range files {
		if f.Name == "NOTES.txt" {
			continue
		}
		name := "tidefill.yaml"
		if f.Name == "scaledobject.yaml" {
			name = f.Name
		}
		text[name] += "---\n" + strings.TrimPrefix(strings.TrimSpace(f.Text), "---\n") + "\n"
	}
	for name, text := range text {
		generated(t, dir+name, []byte(note+strings.TrimPrefix(text, "---\n")))
	}
}

// The manifests are accepted together, and what they name exists.
func TestManifests(t *testing.T) {
	objects := manifests(t, manifestsDir, "tidefill.yaml", "vllm.yaml", "scaledobject.yaml")
	checkAll(t, objects)
	_, cfg := podOf(t, objects)
	for _, p := range cfg.Pools {
		if p.Name != "batch" {
			continue // of the user
		}
		exists(t, objects, "Service", p.Kubernetes.Service)
		exists(t, objects, "Deployment", p.Kubernetes.Target.Name)
	}
	scaled := of(objects, "ScaledObject")[0]
	exists(t, objects, "Deployment", nested(scaled, "spec", "scaleTargetRef", "name").(string))
}

// manifests returns the objects of files of a directory.
func manifests(
	t *testing.T, dir string, names ...string,
) (objects []*unstructured.Unstructured) {
	t.Helper()
	for _, name := range names {
		more, err := chart.Decode(read(t, dir+name))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		objects = append(objects, more...)
	}
	return objects
}

func exists(t *testing.T, objects []*unstructured.Unstructured, kind, name string) {
	t.Helper()
	for _, o := range of(objects, kind) {
		if o.GetName() == name {
			return
		}
	}
	t.Errorf("there is no %s %s", kind, name)
}
