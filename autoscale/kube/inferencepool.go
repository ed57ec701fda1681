package kube

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inferencePool is what is used of an InferencePool.
type inferencePool struct {
	selector labels.Set
	ports    []int32 // each is a runner of its own
	err      error   // why the pool can't be used
}

// inferencePools returns the resource of a group's InferencePools.
func inferencePools(group string) schema.GroupVersionResource {
	version := "v1"
	if group == oldInferenceGroup {
		version = "v1alpha2"
	}
	return schema.GroupVersionResource{Group: group, Version: version, Resource: "inferencepools"}
}

func newInferencePool(o any) inferencePool {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return inferencePool{err: errors.New("it is no InferencePool")}
	}
	selectorPath := []string{"spec", "selector"}
	if u.GroupVersionKind().Group != oldInferenceGroup {
		selectorPath = append(selectorPath, "matchLabels")
	}
	var x inferencePool
	selector, _, err := unstructured.NestedStringMap(u.Object, selectorPath...)
	if err != nil || len(selector) == 0 {
		x.err = fmt.Errorf("it selects no pods by spec.selector: %w",
			errors.Join(err, errors.New("set labels there")))
		return x
	}
	x.selector = selector
	if number, found, _ := unstructured.NestedInt64(u.Object, "spec", "targetPortNumber"); found {
		x.ports = append(x.ports, int32(number))
	}
	targets, _, _ := unstructured.NestedSlice(u.Object, "spec", "targetPorts")
	for _, target := range targets {
		fields, _ := target.(map[string]any)
		if number, found, _ := unstructured.NestedInt64(fields, "number"); found {
			x.ports = append(x.ports, int32(number))
		}
	}
	if len(x.ports) == 0 {
		x.err = errors.New("it has no target port; set spec.targetPorts")
	}
	return x
}
