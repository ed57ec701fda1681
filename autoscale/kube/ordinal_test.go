package kube

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOrderOfAStatefulSet(t *testing.T) {
	c := &Cluster{followers: map[string]*follower{}}
	for pool, target := range map[string]Target{"a": {Kind: "StatefulSet", Name: "vllm"},
		"b": {Kind: "Deployment", Name: "vllm"}, "c": {}} {
		c.followers[pool] = &follower{cfg: PoolConfig{Selector: "app=vllm", Target: target}}
	}
	if c.Order("b") != nil || c.Order("c") != nil || c.Order("d") != nil {
		t.Error("others than a StatefulSet have an order")
	}
	pods := []string{"vllm-0", "vllm-9", "other", "vllm-10", "missing/0", "vllm-2"}
	slices.SortFunc(pods, c.Order("a"))
	want := []string{"missing/0", "vllm-10", "vllm-9", "vllm-2", "vllm-0", "other"}
	if diff := cmp.Diff(want, pods); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
