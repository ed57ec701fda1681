package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fieldManager marks the fields that this program sets.
const fieldManager = "tidefill"

// SetDeletionCosts sets the pod deletion costs of a pool: when a Deployment shrinks, the pods with
// the lowest cost end first. The cost of a pod that is not in costs is removed. Pods that have the
// wanted cost already are left alone, and so are those whose cost somebody else has set. A pod that
// has a cost and has just changed is left to the next call. Nothing happens if the pool has no
// target whose controller uses the costs, as a StatefulSet does not.
func (c *Cluster) SetDeletionCosts(
	ctx context.Context, pool string, costs map[string]int,
) error {
	f := c.follower(pool)
	if f == nil || !f.cfg.usesCosts() {
		return nil
	}
	pods, err := f.currentPods()
	if err != nil {
		return fmt.Errorf("set the pod deletion costs of pool %s: %w", pool, err)
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		p, wanted := pods[name], ""
		if cost, wants := costs[name]; wants {
			wanted = strconv.Itoa(clamp(cost))
		}
		if p.cost == wanted || p.cost != "" && !p.owner {
			continue
		}
		if err := f.setCost(ctx, p, wanted); err != nil {
			faults = append(faults, err)
		}
	}
	if err := first(faults); err != nil {
		return fmt.Errorf("set the pod deletion costs of pool %s: %w", pool, err)
	}
	return nil
}

// usesCosts reports whether the controller of the target uses pod deletion costs.
func (c PoolConfig) usesCosts() bool {
	return c.Target.Name != "" && c.Target.Kind != "StatefulSet"
}

// clamp limits a cost to the range of the annotation.
func clamp(cost int) int { return max(-1<<31, min(cost, 1<<31-1)) }

// currentPods returns the pods of the pool.
func (f *follower) currentPods() (map[string]pod, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pods == nil {
		return nil, errors.New("the pods have not been read yet")
	}
	pods, _ := f.pods.get()
	return pods, nil
}

// setCost sets or, if empty, removes the cost of a pod. A pod that is gone needs none.
func (f *follower) setCost(ctx context.Context, p pod, cost string) error {
	var value any // null removes
	if cost != "" {
		value = cost
	}
	metadata := map[string]any{
		"uid":         p.uid, // not for a later pod of the same name
		"annotations": map[string]any{corev1.PodDeletionCost: value},
	}
	if p.cost != "" { // not over a cost that somebody else has set since
		metadata["resourceVersion"] = p.version
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	_, err = f.cluster.clients.typed.CoreV1().Pods(f.cfg.Namespace).Patch(ctx, p.name,
		types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	f.cluster.gauges.errors.WithLabelValues(f.pool, "pods", kindOf(err)).Inc()
	return object{"", "pods", f.cfg.Namespace, p.name}.explain("patch", err)
}

// ownsCost reports whether this program has set the cost of a pod.
func ownsCost(p *corev1.Pod) bool {
	for _, fields := range p.ManagedFields {
		if fields.Manager != fieldManager || fields.FieldsV1 == nil {
			continue
		}
		var owned struct {
			Metadata struct {
				Annotations map[string]any `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		if json.Unmarshal(fields.FieldsV1.GetRawBytes(), &owned) == nil {
			if _, owns := owned.Metadata.Annotations["f:"+corev1.PodDeletionCost]; owns {
				return true
			}
		}
	}
	return false
}
