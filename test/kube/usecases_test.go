package kube_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/internal/apptest"
)

// A daemon with the least permissions follows use cases and pools, and writes their status.
func TestDaemonFollowsUseCases(t *testing.T) {
	apply(t, definitions+"usecasesets.tidefill.dev.yaml")
	apply(t, definitions+"pools.tidefill.dev.yaml")
	w := newWorld(t)
	objectives := w.define("inference.networking.x-k8s.io", "v1alpha2", "inferenceobjectives",
		"InferenceObjective", map[string]any{})
	client, err := dynamic.NewForConfig(plane.config)
	if err != nil {
		t.Fatal(err)
	}
	resource := func(plural string) dynamic.ResourceInterface {
		return client.Resource(schema.GroupVersionResource{Group: "tidefill.dev",
			Version: "v1alpha1", Resource: plural}).Namespace(w.namespace)
	}
	create := func(r dynamic.ResourceInterface, version, kind, name string, spec map[string]any) {
		t.Helper()
		if _, err := r.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name,
				"namespace": w.namespace}, "spec": spec}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, nil))
	cfg.Registry.Kubernetes.UseCases, cfg.Registry.Kubernetes.Pools = true, true
	cfg.Kubernetes.Namespace = w.namespace
	cfg.Kubernetes.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	user := "usecases-" + w.namespace
	w.grant(user, kube.Roles("tidefill", w.namespace, cfg.Kubernetes, nil,
		kube.Documents{UseCases: true, Pools: true}))
	if err := plane.kubeconfig(cfg.Kubernetes.Kubeconfig, plane.address(), user,
		"default"); err != nil {
		t.Fatal(err)
	}
	d, _ := apptest.Start(t, cfg, app.Options{})

	const own = "tidefill.dev/v1alpha1"
	of := func(pool string, models ...any) map[string]any {
		var all []any
		for _, m := range models {
			all = append(all, map[string]any{"modelName": m})
		}
		return map[string]any{"useCases": all, "poolRef": []any{map[string]any{"name": pool}}}
	}
	create(resource("usecasesets"), own, "UseCaseSet", "first", of("extra", "m"))
	create(objectives, "inference.networking.x-k8s.io/v1alpha2", "InferenceObjective", "up",
		map[string]any{"priority": int64(1), "poolRef": map[string]any{"name": "p"}})
	await := func(plural, name, want string) {
		t.Helper()
		until(t, func() string {
			u, err := resource(plural).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			got := conditionOf(u)
			if !strings.HasPrefix(got, want) {
				return fmt.Sprintf("%s %s: %s, want %s", plural, name, got, want)
			}
			return ""
		})
	}
	await("usecasesets", "first", "1 False PoolNotFound")
	create(resource("usecasesets"), own, "UseCaseSet", "second", of("extra", "m"))
	await("usecasesets", "second", `1 False Refused spec.useCases[0].modelName: is "m"`)
	create(resource("pools"), own, "Pool", "extra", map[string]any{"models": []any{"m"},
		"endpoints": []any{apptest.StartRunner(t, nil)}})
	await("pools", "extra", "1 True Accepted")
	await("usecasesets", "first", "1 True Accepted")
	// A set that is corrected is in force, and its status is of its generation.
	second, err := resource("usecasesets").Get(t.Context(), "second", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	second.Object["spec"] = of("extra", "n")
	if _, err := resource("usecasesets").Update(t.Context(), second,
		metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await("usecasesets", "second", "2 True Accepted")
	// Pods of a pool are runners.
	create(resource("pools"), own, "Pool", "pods", map[string]any{"models": []any{"m"},
		"selector": map[string]any{"matchLabels": map[string]any{"app": "vllm"}},
		"replicas": map[string]any{"max": int64(2)}})
	await("pools", "pods", "1 True Accepted")
	awaitDegraded(t, d, "")
	if err := resource("pools").Delete(context.Background(), "extra",
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await("usecasesets", "first", "1 False PoolNotFound")
}

// conditionOf returns the observed generation and the condition Accepted of an object.
func conditionOf(u *unstructured.Unstructured) string {
	observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if of, is := c.(map[string]any); is && of["type"] == "Accepted" {
			return fmt.Sprint(observed, " ", of["status"], " ", of["reason"], " ", of["message"])
		}
	}
	return "no condition"
}
