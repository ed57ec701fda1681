package kube_test

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidefill/tidefill/autoscale/kube"
)

const costAnnotation = "controller.kubernetes.io/pod-deletion-cost"

// A Deployment that shrinks loses the pods with the lowest cost, as the real controller decides.
func TestDeletionCostDecidesWhichPodEnds(t *testing.T) {
	w := newWorld(t)
	w.deployment("vllm", 3)
	d := w.daemon(options{}, kube.Watched{Name: "batch", PoolConfig: kube.PoolConfig{
		Selector: "app=vllm", Target: kube.Target{Name: "vllm"}}})
	names := w.awaitPods("vllm", 3)
	slices.Sort(names)
	for _, name := range names {
		w.ready(name, "")
	}
	until(t, func() string {
		if s, _ := d.State("batch"); len(s.Runners) != 3 || s.Desired != 3 {
			return "the pods are not known: " + describe(s)
		}
		return ""
	})
	set := func(costs map[string]int) {
		t.Helper()
		if err := d.SetDeletionCosts(t.Context(), "batch", costs); err != nil {
			t.Fatal(err)
		}
	}
	until(t, func() string { // a pod that changes meanwhile is left to the next call
		set(map[string]int{names[0]: 500, names[1]: 20, names[2]: 1 << 40})
		return w.costsDiffer(names, "500", "20", "2147483647")
	})

	w.scale("vllm", 2)
	until(t, func() string {
		s, _ := d.State("batch")
		for _, r := range s.Runners {
			if phaseNames[r.Phase] == "draining" {
				if r.Name != names[1] {
					t.Fatalf("%s ends, want %s", r.Name, names[1])
				}
				return ""
			}
		}
		return "no pod ends: " + describe(s)
	})

	// Costs that are not wanted any more are removed, those of others stay.
	_, err := plane.admin.CoreV1().Pods(w.namespace).Patch(t.Context(), names[2],
		types.MergePatchType, []byte(`{"metadata": {"annotations": {"`+costAnnotation+
			`": "7"}}}`), metav1.PatchOptions{FieldManager: "somebody"})
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() string {
		set(nil)
		return w.costsDiffer(names, "", "", "7")
	})
	w.gone(names[1])
	until(t, func() string { // a pod that is gone is no error
		set(map[string]int{names[0]: 1, names[1]: 2})
		return w.costsDiffer([]string{names[0], names[2]}, "1", "7")
	})
}

// costsDiffer says how the costs of pods differ from those wanted; empty: not at all.
func (w *world) costsDiffer(names []string, want ...string) string {
	w.t.Helper()
	var got []string
	for _, name := range names {
		p, err := plane.admin.CoreV1().Pods(w.namespace).Get(w.t.Context(), name,
			metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		got = append(got, p.Annotations[costAnnotation])
	}
	if slices.Equal(got, want) {
		return ""
	}
	return fmt.Sprintf("got the costs %q, want %q", got, want)
}
