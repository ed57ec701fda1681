package deploy_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidefill/tidefill/config"
)

type mount = corev1.VolumeMount

// podOf returns the StatefulSet of the daemon and its configuration.
func podOf(
	t *testing.T, objects []*unstructured.Unstructured,
) (set appsv1.StatefulSet, cfg config.Config) {
	t.Helper()
	typed(t, of(objects, "StatefulSet")[0], &set)
	text := nested(of(objects, "ConfigMap")[0], "data", "tidefill.yaml").(string)
	return set, checkConfig(t, "tidefill.yaml", text)
}

// typed converts an object into its type.
func typed(t *testing.T, o *unstructured.Unstructured, into any) {
	t.Helper()
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into)
	if err != nil {
		t.Fatal(err)
	}
}

// within reports whether a path is a directory or below it.
func within(path, dir string) bool { return strings.HasPrefix(path+"/", dir+"/") }
