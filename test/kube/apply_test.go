package kube_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// apply applies the objects of a file by server-side apply, as kubectl apply --server-side does. An
// unknown field is an error.
func apply(t *testing.T, file string) { applyIn(t, file, "") }

// applyIn is apply with another namespace for all objects. Empty: each has its own.
func applyIn(t *testing.T, file, namespace string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(plane.config)
	if err != nil {
		t.Fatal(err)
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		var u unstructured.Unstructured
		if err := yaml.UnmarshalStrict(document, &u.Object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if u.Object == nil {
			continue // comments
		}
		// A kind that was just defined is not served at once.
		until(t, func() string {
			resource, namespaced := resourceOf(t, u.GroupVersionKind())
			if resource.Resource == "" {
				return "the API server has no kind " + u.GetKind()
			}
			var target dynamic.ResourceInterface = client.Resource(resource)
			if namespaced && namespace != "" {
				u.SetNamespace(namespace)
			}
			if namespaced {
				target = client.Resource(resource).Namespace(u.GetNamespace())
			}
			json, err := u.MarshalJSON()
			if err == nil {
				_, err = target.Patch(t.Context(), u.GetName(), types.ApplyPatchType, json,
					metav1.PatchOptions{FieldManager: "test",
						FieldValidation: metav1.FieldValidationStrict})
			}
			if err != nil {
				t.Fatalf("%s: %s %s: %v", file, u.GetKind(), u.GetName(), err)
			}
			return ""
		})
	}
}

// resourceOf returns the resource of a kind; empty: it is not served.
func resourceOf(t *testing.T, kind schema.GroupVersionKind) (
	r schema.GroupVersionResource, namespaced bool,
) {
	t.Helper()
	list, err := plane.admin.Discovery().ServerResourcesForGroupVersion(
		kind.GroupVersion().String())
	if err != nil {
		return r, false
	}
	for _, served := range list.APIResources {
		if served.Kind == kind.Kind && !strings.Contains(served.Name, "/") {
			return kind.GroupVersion().WithResource(served.Name), served.Namespaced
		}
	}
	return r, false
}

// installKEDA defines the kinds of KEDA, from its module.
func installKEDA(t *testing.T) {
	t.Helper()
	c := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/kedacore/keda/v2")
	c.Dir = "../.."
	dir, err := c.Output()
	if err != nil {
		t.Fatalf("find the module of KEDA: %v", err)
	}
	crds := filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "bases")
	for _, name := range []string{"scaledobjects", "triggerauthentications"} {
		apply(t, filepath.Join(crds, "keda.sh_"+name+".yaml"))
	}
	for _, kind := range []string{"ScaledObject", "TriggerAuthentication"} {
		until(t, func() string {
			r, _ := resourceOf(t, schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1",
				Kind: kind})
			if r.Resource == "" {
				return "KEDA's kind " + kind + " is not served"
			}
			return ""
		})
	}
}
