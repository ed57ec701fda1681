package deploy_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/test/deploy/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const chartDir = "../../deploy/helm/tidefill"

var update = flag.Bool("update", false, "write generated files instead of comparing them")

// installed is the release of the tests.
var installed = chart.Release{Name: "tidefill", Namespace: "llm"}

// render returns the objects of the chart with values.
func render(t *testing.T, r chart.Release, values string) []*unstructured.Unstructured {
	t.Helper()
	files, err := r.Render(chartDir, values)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := chart.Objects(files)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// eachFile calls test with the name and content of each file.
func eachFile(t *testing.T, pattern string, test func(t *testing.T, name, text string)) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no files (%v)", pattern, err)
	}
	for _, name := range names {
		base := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
		t.Run(base, func(t *testing.T) { test(t, base, read(t, name)) })
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// generated compares a file with what it is generated as, or writes it.
func generated(t *testing.T, name string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal([]byte(read(t, name)), want) {
		t.Errorf("%s is not what it is generated from; run make manifests", name)
	}
}

// of returns the objects of a kind.
func of(objects []*unstructured.Unstructured, kind string) (some []*unstructured.Unstructured) {
	for _, o := range objects {
		if o.GetKind() == kind {
			some = append(some, o)
		}
	}
	return some
}
