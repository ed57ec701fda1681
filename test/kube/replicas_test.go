package kube_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The chart is upgraded from one replica with a volume to three on the cluster store, to another
// release of these, and to separate roles. While the release changes, users have three replicas.
func TestReplicasInstalled(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it builds helm")
	}
	const example = deploy + "kubernetes/cluster/values.yaml"
	w := newWorld(t)
	helm := newHelm(t, w.namespace)
	helm("install", "tidefill", deploy+"helm/tidefill",
		"--set", "config.upstreams[0].url=http://vllm:8000")
	upgrade := func(args ...string) {
		t.Helper()
		helm(append([]string{"upgrade", "tidefill", deploy + "helm/tidefill", "-f", example},
			args...)...)
	}
	upgrade()
	if _, err := plane.admin.AppsV1().StatefulSets(w.namespace).Get(t.Context(), "tidefill",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the StatefulSet is left (%v)", err)
	}
	old := map[string]bool{}
	for _, pod := range w.awaitReplicas("all", 3) {
		w.bind(pod.Name)
		w.ready(pod.Name, "")
		old[pod.Name] = true
	}
	w.awaitEndpoints("tidefill", 3)

	upgrade("--set", "image.tag=next")
	for range 3 { // a kubelet that starts one pod after the other
		var next corev1.Pod
		until(t, func() string {
			if ready := w.readyReplicas(); ready < 3 {
				t.Fatalf("users have %d replicas during the update", ready)
			}
			for _, pod := range w.replicas("all") {
				if !old[pod.Name] && !isReady(pod) {
					next = pod
					return ""
				}
			}
			return "no pod of the new release waits"
		})
		w.bind(next.Name)
		w.ready(next.Name, "")
		w.reap()
	}
	until(t, func() string {
		w.reap()
		left := 0
		for _, pod := range w.replicas("all") {
			if old[pod.Name] {
				left++
			}
		}
		if left > 0 || w.readyReplicas() != 3 {
			return fmt.Sprintf("%d old pods are left, %d are ready", left, w.readyReplicas())
		}
		return ""
	})

	upgrade("--set", "roles=separate", "--set", "dispatch.replicas=2")
	for _, pod := range append(w.awaitReplicas("api", 3), w.awaitReplicas("dispatch", 2)...) {
		w.bind(pod.Name)
		w.ready(pod.Name, "")
	}
	w.awaitEndpoints("tidefill", 3)
	w.awaitEndpoints("tidefill-scaler", 2)
	list, err := plane.admin.PolicyV1().PodDisruptionBudgets(w.namespace).List(t.Context(),
		metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("there are %d budgets (%v)", len(list.Items), err)
	}
}

// replicas returns the pods of the daemon with a component, those that end among them.
func (w *world) replicas(component string) []corev1.Pod {
	w.t.Helper()
	list, err := plane.admin.CoreV1().Pods(w.namespace).List(w.t.Context(), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name=tidefill,app.kubernetes.io/component=" + component})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// awaitReplicas waits until there are as many pods of a component.
func (w *world) awaitReplicas(component string, count int) (pods []corev1.Pod) {
	w.t.Helper()
	until(w.t, func() string {
		if pods = w.replicas(component); len(pods) != count {
			return fmt.Sprintf("%d pods of %s, want %d", len(pods), component, count)
		}
		return ""
	})
	return pods
}

// readyReplicas returns how many pods are ready and don't end.
func (w *world) readyReplicas() (ready int) {
	w.t.Helper()
	for _, pod := range w.replicas("all") {
		if pod.DeletionTimestamp == nil && isReady(pod) {
			ready++
		}
	}
	return ready
}

func isReady(pod corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// reap removes the pods that end, as their kubelet would.
func (w *world) reap() {
	w.t.Helper()
	now := int64(0)
	for _, pod := range w.replicas("all") {
		if pod.DeletionTimestamp == nil {
			continue
		}
		err := plane.admin.CoreV1().Pods(w.namespace).Delete(w.t.Context(), pod.Name,
			metav1.DeleteOptions{GracePeriodSeconds: &now})
		if err != nil && !apierrors.IsNotFound(err) {
			w.t.Fatal(err)
		}
	}
}

// awaitEndpoints waits until a Service has as many ready endpoints.
func (w *world) awaitEndpoints(service string, count int) {
	w.t.Helper()
	until(w.t, func() string {
		list, err := plane.admin.DiscoveryV1().EndpointSlices(w.namespace).List(w.t.Context(),
			metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
		if err != nil {
			w.t.Fatal(err)
		}
		ready := 0
		for _, slice := range list.Items {
			for _, e := range slice.Endpoints {
				if e.Conditions.Ready != nil && *e.Conditions.Ready {
					ready++
				}
			}
		}
		if ready != count {
			return fmt.Sprintf("Service %s has %d endpoints, want %d", service, ready, count)
		}
		return ""
	})
}
