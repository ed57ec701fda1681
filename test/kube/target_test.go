package kube_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidefill/tidefill/autoscale/kube"
)

// Any kind with /scale can be a target, wherever it keeps its number of replicas.
func TestTargetOfACustomKind(t *testing.T) {
	w := newWorld(t)
	groups := w.define("example.com", "v1", "modelgroups", "ModelGroup", map[string]any{
		"status": map[string]any{},
		"scale": map[string]any{"specReplicasPath": ".spec.size",
			"statusReplicasPath": ".status.size"}})
	d := w.daemon(options{}, kube.Watched{Name: "batch", PoolConfig: kube.PoolConfig{
		Selector: "app=vllm", Target: kube.Target{Kind: "ModelGroup", Name: "vllm",
			APIVersion: "example.com/v1"}}})
	d.awaitError("batch", "modelgroups.example.com/vllm in namespace "+w.namespace+
		" does not exist; create it, or correct pools[].kubernetes.target")
	_, err := groups.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "ModelGroup",
		"metadata": map[string]any{"name": "vllm"},
		"spec":     map[string]any{"size": int64(2)}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.await("batch", "missing 2, desired 2")
	_, err = groups.Patch(t.Context(), "vllm", types.MergePatchType,
		[]byte(`{"spec": {"size": 1}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := d.await("batch", "missing 1, desired 1")
	if s.Err != nil {
		t.Error(s.Err)
	}
}

// A target that can't be scaled is named with what to change, and another pool is not affected.
func TestTargetsThatDoNotExist(t *testing.T) {
	w := newWorld(t)
	w.deployment("vllm", 1)
	pool := func(name string, target kube.Target) kube.Watched {
		return kube.Watched{Name: name, PoolConfig: kube.PoolConfig{Selector: "app=vllm",
			Target: target}}
	}
	d := w.daemon(options{}, pool("well", kube.Target{Name: "vllm"}),
		pool("scaleless", kube.Target{Kind: "ConfigMap", APIVersion: "v1", Name: "vllm"}),
		pool("kind", kube.Target{Kind: "Deploy", Name: "vllm"}),
		pool("version", kube.Target{Kind: "Deployment", Name: "vllm",
			APIVersion: "apps/v7"}),
		pool("name", kube.Target{Name: "vlm"}))
	name := w.awaitPods("vllm", 1)[0]
	d.awaitError("scaleless", "ConfigMap vllm has no subresource /scale, so its replicas can't "+
		"be read or set; name a Deployment, a StatefulSet or another object that has it in "+
		"pools[].kubernetes.target")
	d.awaitError("kind", "apps/v1 has no kind Deploy; correct pools[].kubernetes.target")
	d.awaitError("version", "the API server has no API version apps/v7; correct "+
		"pools[].kubernetes.target.api_version")
	d.awaitError("name", "deployments.apps/vlm in namespace "+w.namespace+" does not exist; "+
		"create it, or correct pools[].kubernetes.target")
	s := d.await("well", name+" starting , desired 1")
	if s.Err != nil {
		t.Error(s.Err)
	}
	d.await("name", name+" starting ") // its runners are found all the same
}

// awaitError waits until the error of a pool contains a text.
func (d *daemon) awaitError(pool, want string) {
	d.t.Helper()
	until(d.t, func() string {
		s, _ := d.State(pool)
		if strings.Contains(fmt.Sprint(s.Err), want) {
			return ""
		}
		return fmt.Sprintf("the error of pool %s is %v, want one with %q", pool, s.Err, want)
	})
}
