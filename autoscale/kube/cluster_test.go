package kube

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// Without pools in Kubernetes, nothing is connected and nothing fails.
func TestOffOutsideOfACluster(t *testing.T) {
	registry := prometheus.NewRegistry()
	c, err := New(DefaultConfig(), []Watched{{Name: "batch"}}, Deps{Registerer: registry})
	if err != nil || c.Enabled() {
		t.Fatalf("got %v, enabled %v", err, c.Enabled())
	}
	ctx, cancel := context.WithCancel(t.Context())
	failure := errors.New("the loop has failed")
	err = c.Lead(ctx, func(context.Context) error {
		if got := testutil.ToFloat64(c.gauges.leader); got != 1 {
			t.Errorf("the metric of the leader is %v", got)
		}
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("lead returned %v", err)
	}
	if err := c.SetDeletionCosts(ctx, "batch", map[string]int{"a": 1}); err != nil {
		t.Error(err)
	}
	if readings, err := c.Readings(ctx, "batch"); readings != nil || err != nil {
		t.Errorf("got the readings %v, %v", readings, err)
	}
	if s, known := c.State("batch"); known || s.Err == nil || s.Desired != Unknown {
		t.Errorf("got the state %+v", s)
	}
	cancel()
	if err := c.Run(ctx); err != nil {
		t.Error(err)
	}
	if _, err := New(DefaultConfig(), nil, Deps{Registerer: registry}); err != nil {
		t.Errorf("another one on the same registry: %v", err)
	}
}

func TestPoolOutsideOfACluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := New(DefaultConfig(), []Watched{{Name: "batch",
		PoolConfig: PoolConfig{Service: "vllm"}}}, Deps{})
	want := "kubernetes.kubeconfig is empty; set it to a kubeconfig file, or remove " +
		"pools[].kubernetes"
	if err == nil || !strings.Contains(err.Error(), want) ||
		!strings.Contains(err.Error(), "pool batch") {
		t.Errorf("got %v, want an error with %q", err, want)
	}
	cfg := DefaultConfig()
	cfg.Kubeconfig = t.TempDir() + "/none"
	if _, err = New(cfg, []Watched{{Name: "batch", PoolConfig: PoolConfig{Service: "vllm"}}},
		Deps{}); err == nil || !strings.Contains(err.Error(), cfg.Kubeconfig) {
		t.Errorf("got %v, want an error with the file's name", err)
	}
}

// newFake returns a Cluster with a pool on a fake API server.
func newFake(t *testing.T, cfg PoolConfig, pods ...*corev1.Pod) (*Cluster, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset()
	for _, p := range pods {
		p.Namespace = "models"
		if err := client.Tracker().Add(p); err != nil {
			t.Fatal(err)
		}
	}
	tuned := DefaultConfig()
	tuned.Settle = 0
	c, err := New(tuned, nil, Deps{})
	if err != nil {
		t.Fatal(err)
	}
	c.follow(&clients{typed: client, namespace: "models"}, readers{}, []Watched{{"batch", cfg}})
	return c, client
}

func run(t *testing.T, c *Cluster) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// awaitWatch waits until the pool is watched. A fake server loses what happens between a list and a
// watch.
func awaitWatch(t *testing.T, c *Cluster) {
	t.Helper()
	awaitThat(t, "the pool is watched", func() bool {
		s, known := c.State("batch")
		return known && s.Age == 0
	})
}

func awaitThat(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("waited 30s until %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// OnChange is called when a state has changed, and not otherwise.
func TestChangesArePublishedOnce(t *testing.T) {
	c, client := newFake(t, PoolConfig{Selector: "app=vllm"}, newTestPod("a", "10.0.0.1"))
	states := make(chan State, 16)
	c.deps.OnChange = func(s State) { states <- s }
	run(t, c)
	next := func() State {
		t.Helper()
		select {
		case s := <-states:
			return s
		case <-time.After(30 * time.Second):
			t.Fatal("no state")
			return State{}
		}
	}
	if s := next(); len(s.Runners) != 1 || s.Runners[0].Name != "a" {
		t.Errorf("got %+v", s)
	}
	awaitWatch(t, c)
	pods := client.CoreV1().Pods("models")
	same := newTestPod("a", "10.0.0.1", func(p *corev1.Pod) {
		p.Annotations = map[string]string{
			"other": "1"}
	})
	if _, err := pods.Update(t.Context(), same, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if s := next(); len(s.Runners) != 0 { // not twice the pod
		t.Errorf("got %+v", s)
	}
}

// Pools come, change and go while a Cluster runs. One that stays is watched on.
func TestPoolsComeAndGo(t *testing.T) {
	c, _ := newFake(t, PoolConfig{Selector: "app=vllm"}, newTestPod("a", "10.0.0.1"))
	run(t, c)
	awaitWatch(t, c)
	use := func(pools ...Watched) {
		t.Helper()
		follow, err := c.Prepare(pools)
		if err != nil {
			t.Fatal(err)
		}
		follow()
	}
	batch := Watched{"batch", PoolConfig{Selector: "app=vllm"}}
	stays := c.follower("batch")
	use(batch, Watched{"other", PoolConfig{Selector: "app=other"}}, Watched{Name: "none"})
	if c.follower("batch") != stays || !c.Has("other") || c.Has("none") {
		t.Error("a pool that stays is not watched on, or one that has come is not watched")
	}
	if _, err := c.Prepare([]Watched{{"batch", PoolConfig{Scheme: "ftp"}}}); err == nil {
		t.Error("a pool that is not valid was taken")
	}
	batch.Port = "9000"
	use(batch)
	if c.follower("batch") == stays || c.Has("other") {
		t.Error("a pool that has changed is not read anew, or one that has gone is watched")
	}
	awaitWatch(t, c)
	if s, _ := c.State("batch"); len(s.Runners) != 1 || s.Runners[0].URL != "http://10.0.0.1:9000" {
		t.Errorf("the runners of the changed pool: %+v", s.Runners)
	}
	use()
	if c.Enabled() {
		t.Error("a pool is left")
	}
}

// A pod that has its cost already is not written, and one of somebody else never.
func TestCostsAreSetWhenTheyChange(t *testing.T) {
	owned := func(cost, manager string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.PodDeletionCost: cost}
			p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager,
				FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{".":{},` +
					`"f:controller.kubernetes.io/pod-deletion-cost":{}}}}`)}}
		}
	}
	cfg := PoolConfig{Selector: "app=vllm", Target: Target{Name: "vllm"}}
	c, client := newFake(t, cfg, newTestPod("a", "", owned("5", "tidefill")),
		newTestPod("b", "", owned("5", "kubectl")), newTestPod("c", ""),
		newTestPod("d", "", owned("5", "tidefill")))
	f := c.followers["batch"]
	if err := c.SetDeletionCosts(t.Context(), "batch", nil); err == nil {
		t.Error("costs of unknown pods were set")
	}
	f.target = nil // a fake server knows no metadata
	run(t, c)
	awaitWatch(t, c)
	client.ClearActions()
	err := c.SetDeletionCosts(t.Context(), "batch", map[string]int{"a": 5, "b": 6, "c": 7})
	if err != nil {
		t.Fatal(err)
	}
	var patched []string
	for _, a := range client.Actions() {
		if a.GetVerb() == "patch" {
			patched = append(patched, a.(interface{ GetName() string }).GetName())
		}
	}
	if diff := cmp.Diff([]string{"c", "d"}, patched); diff != "" {
		t.Errorf("patched pods, -want +got:\n%s", diff)
	}
	f.cfg.Target.Kind = "StatefulSet" // whose controller ignores costs
	client.ClearActions()
	if err := c.SetDeletionCosts(t.Context(), "batch", map[string]int{"c": 8}); err != nil ||
		len(client.Actions()) > 0 {
		t.Errorf("got %v, %v", err, client.Actions())
	}
}

func TestRoles(t *testing.T) {
	cfg := DefaultConfig()
	pools := []Watched{
		{"none", PoolConfig{}},
		{"batch", PoolConfig{Service: "vllm", Target: Target{Name: "vllm"}}},
		{"again", PoolConfig{Selector: "app=vllm", Target: Target{Kind: "StatefulSet",
			Name: "vllm"}}},
		{"shared", PoolConfig{InferencePool: "vllm", Namespace: "models"}},
	}
	rule := func(group, resource, verbs string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource},
			Verbs: strings.Fields(verbs), ResourceNames: names}
	}
	want := map[string][]rbacv1.PolicyRule{
		"tidefill": {
			rule("", "services", "list watch", "vllm"),
			rule("discovery.k8s.io", "endpointslices", "list watch"),
			rule("", "pods", "list watch"),
			rule("", "pods", "patch"),
			rule("apps", "deployments", "list watch", "vllm"),
			rule("apps", "deployments/scale", "get", "vllm"),
			rule("coordination.k8s.io", "leases", "create"),
			rule("coordination.k8s.io", "leases", "get update", "tidefill"),
			rule("apps", "statefulsets", "list watch", "vllm"),
			rule("apps", "statefulsets/scale", "get", "vllm"),
		},
		"models": {
			rule("inference.networking.k8s.io", "inferencepools", "list watch", "vllm"),
			rule("", "pods", "list watch"),
			rule("", "configmaps", "list watch", "templates", "profiles"),
		},
	}
	maps := ConfigMaps{Namespace: "models", Names: []string{"templates", "profiles"}}
	got := map[string][]rbacv1.PolicyRule{}
	for _, role := range Roles("tidefill", "tidefill", cfg, pools, maps) {
		got[role.Namespace] = role.Rules
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if roles := Roles("tidefill", "tidefill", cfg, pools[:1], ConfigMaps{}); len(roles) != 0 {
		t.Errorf("got %v though nothing is in Kubernetes", roles)
	}
}
