package kube_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/tidefill/tidefill/autoscale/kube"
)

func TestSelectorOfPods(t *testing.T) {
	w := newWorld(t)
	d := w.daemon(options{}, kube.Watched{Name: "batch", PoolConfig: kube.PoolConfig{
		Selector: "app=vllm,tier!=canary", Port: "http", Prefill: "role=prefill",
		Decode: "role=decode"}})
	d.await("batch", "")
	w.pod("a", map[string]string{"app": "vllm", "role": "prefill"})
	w.pod("b", map[string]string{"app": "vllm", "role": "decode"})
	w.pod("c", map[string]string{"app": "vllm", "tier": "canary"})
	w.pod("d", map[string]string{"app": "other"})
	w.ready("b", "fd00::2")
	s := d.await("batch", "a starting , b ready http://[fd00::2]:8000")
	if s.Runners[0].Role != kube.Prefill || s.Runners[1].Role != kube.Decode {
		t.Errorf("got the roles %q and %q", s.Runners[0].Role, s.Runners[1].Role)
	}
	w.end("b")
	d.await("batch", "a starting , b draining http://[fd00::2]:8000")
	w.gone("b")
	w.status("a", corev1.PodStatus{Phase: corev1.PodFailed}) // evicted
	d.await("batch", "")
}

// A Service without a selector has EndpointSlices that somebody else writes.
func TestServiceOfEndpointsByHand(t *testing.T) {
	w := newWorld(t)
	_, err := plane.admin.CoreV1().Services(w.namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "outside"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	number := int32(8000)
	_, err = plane.admin.DiscoveryV1().EndpointSlices(w.namespace).Create(t.Context(),
		&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: "outside-1", Labels: map[string]string{
				discoveryv1.LabelServiceName: "outside"}},
			AddressType: discoveryv1.AddressTypeIPv6,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"fd00::7"}}},
			Ports:       []discoveryv1.EndpointPort{{Port: &number}},
		}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := w.daemon(options{}, kube.Watched{Name: "batch", PoolConfig: kube.PoolConfig{
		Service: "outside"}})
	d.await("batch", "[fd00::7]:8000 ready http://[fd00::7]:8000")
}

// crd returns a minimal CustomResourceDefinition of a namespaced kind.
func crd(group, version, plural, kind string, subresources map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		// The groups of k8s.io are protected; this is how their own CRDs are approved.
		"metadata": map[string]any{"name": plural + "." + group, "annotations": map[string]any{
			"api-approved.kubernetes.io": "unapproved, for a test"}},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"plural": plural, "kind": kind},
			"versions": []any{map[string]any{
				"name": version, "served": true, "storage": true, "subresources": subresources,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
					"x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}
}

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// define creates a CustomResourceDefinition and returns a client of its objects.
func (w *world) define(group, version, plural, kind string,
	subresources map[string]any) dynamic.ResourceInterface {
	w.t.Helper()
	client, err := dynamic.NewForConfig(plane.config)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = client.Resource(crds).Create(w.t.Context(), &unstructured.Unstructured{
		Object: crd(group, version, plural, kind, subresources)}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	objects := client.Resource(schema.GroupVersionResource{Group: group, Version: version,
		Resource: plural})
	until(w.t, func() string {
		if _, err := objects.List(w.t.Context(), metav1.ListOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	w.t.Cleanup(func() {
		// The context of the test has ended.
		err := client.Resource(crds).Delete(context.Background(), plural+"."+group,
			metav1.DeleteOptions{})
		if err != nil {
			w.t.Error(err)
		}
	})
	return objects.Namespace(w.namespace)
}

func TestInferencePools(t *testing.T) {
	for _, test := range []struct {
		group, version string
		spec           func(app string) map[string]any
	}{
		{"inference.networking.k8s.io", "v1", func(app string) map[string]any {
			return map[string]any{
				"selector":    map[string]any{"matchLabels": map[string]any{"app": app}},
				"targetPorts": []any{map[string]any{"number": int64(8000)}}}
		}},
		{"inference.networking.x-k8s.io", "v1alpha2", func(app string) map[string]any {
			return map[string]any{"selector": map[string]any{"app": app},
				"targetPortNumber": int64(8000)}
		}},
	} {
		t.Run(test.group, func(t *testing.T) {
			w := newWorld(t)
			pools := w.define(test.group, test.version, "inferencepools", "InferencePool", nil)
			w.pod("a", map[string]string{"app": "vllm"})
			w.ready("a", "10.1.0.1")
			w.pod("b", map[string]string{"app": "sglang"})
			w.ready("b", "10.1.0.2")
			d := w.daemon(options{}, kube.Watched{Name: "batch", PoolConfig: kube.PoolConfig{
				InferencePool: "pool", InferencePoolGroup: test.group}})
			until(t, func() string {
				s, known := d.State("batch")
				want := fmt.Sprintf("inferencepools.%s/pool in namespace %s does not exist; "+
					"create it, or correct pools[].kubernetes.inference_pool", test.group,
					w.namespace)
				if got := fmt.Sprint(s.Err); known || got != want {
					return fmt.Sprintf("the error is %q, want %q", got, want)
				}
				return ""
			})
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": test.group + "/" + test.version, "kind": "InferencePool",
				"metadata": map[string]any{"name": "pool"}, "spec": test.spec("vllm")}}
			object, err := pools.Create(t.Context(), object, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			d.await("batch", "a ready http://10.1.0.1:8000")
			object.Object["spec"] = test.spec("sglang")
			if _, err = pools.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			d.await("batch", "b ready http://10.1.0.2:8000")
			err = pools.Delete(t.Context(), "pool", metav1.DeleteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			until(t, func() string {
				s, _ := d.State("batch")
				if s.Err == nil || describe(s) != "b ready http://10.1.0.2:8000" {
					return fmt.Sprintf("got %s, %v; want the last state, with an error",
						describe(s), s.Err)
				}
				return ""
			})
		})
	}
}
