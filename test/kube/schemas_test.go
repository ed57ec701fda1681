package kube_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// definitions are the definitions of Tidefill's own resources.
const definitions = deploy + "helm/tidefill/crds/"

// The schemas judge each manifest of the table as package registry does.
func TestSchemasJudgeAsTheRegistryDoes(t *testing.T) {
	apply(t, definitions+"usecasesets.tidefill.dev.yaml")
	apply(t, definitions+"pools.tidefill.dev.yaml")
	client, err := dynamic.NewForConfig(plane.config)
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("../../registry/testdata/manifests.txt")
	if err != nil {
		t.Fatal(err)
	}
	judged := 0
	for group := range strings.SplitSeq(strings.TrimSpace(string(table)), "\n\n") {
		head, manifest, _ := strings.Cut(group, "\n")
		verdict, what, _ := strings.Cut(head, ": ")
		var u unstructured.Unstructured
		if err := yaml.UnmarshalStrict([]byte(manifest), &u.Object); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		until(t, func() string { // a kind that was just defined is not served at once
			resource, _ := resourceOf(t, u.GroupVersionKind())
			if resource.Resource == "" {
				return "the API server has no kind " + u.GetKind()
			}
			_, err := client.Resource(resource).Namespace("default").Create(t.Context(), &u,
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll},
					FieldValidation: metav1.FieldValidationStrict})
			if (err == nil) != (verdict == "good") {
				t.Errorf("%s: want %s, got %v", what, verdict, err)
			}
			if err != nil && !strings.Contains(err.Error(), "invalid") &&
				!strings.Contains(err.Error(), "unknown field") {
				return fmt.Sprintf("%s: %v", what, err)
			}
			return ""
		})
		judged++
	}
	if judged < 40 {
		t.Errorf("the table has %d manifests", judged)
	}
}
