package kube_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tidefill/tidefill/autoscale/kube"
)

const deploy = "../../deploy/"

// The API server accepts the plain manifests, and a daemon with their ServiceAccount can do what
// their configuration needs, and no more.
func TestManifestsApplied(t *testing.T) {
	installKEDA(t)
	w := newWorldIn(t, metav1.ObjectMeta{Name: "llm"})
	for _, name := range []string{"vllm.yaml", "tidefill.yaml", "scaledobject.yaml"} {
		apply(t, deploy+"kubernetes/"+name)
	}
	w.service("vllm", 8000) // of the user
	account := "system:serviceaccount:llm:tidefill"
	cfg, pools := w.config("tidefill")
	daemon := w.daemon(options{user: account, node: "tidefill-0",
		roles: func([]rbacv1.Role) []rbacv1.Role { return nil }, // the manifests have them
		edit:  func(c *kube.Config) { c.Lease = cfg.Lease }}, pools...)
	lead(t, daemon)
	w.scale("vllm-batch", 1)
	pod := w.awaitPods("vllm-batch", 1)[0]
	w.bind(pod)
	w.ready(pod, "10.1.0.1")
	daemon.await("batch", pod+" ready http://10.1.0.1:8000, desired 1")
	daemon.await("chat", "")
	until(t, func() string {
		if err := daemon.useAll(); err != nil {
			return err.Error()
		}
		if daemon.value("tidefill_kubernetes_leader") != 1 {
			return "it does not lead"
		}
		return ""
	})

	want := kube.Roles("tidefill", "llm", cfg, pools)[0].Rules
	if diff := cmp.Diff(want, granted(t, account, "llm"), inAnyOrder); diff != "" {
		t.Errorf("permissions: -needed +granted\n%s", diff)
	}
	if got := granted(t, account, "default"); len(got) > 0 {
		t.Errorf("in another namespace it may %v", got)
	}

	// Those of several replicas replace them; CloudNativePG is not installed.
	for _, name := range []string{"redis.yaml", "tidefill.yaml"} {
		apply(t, deploy+"kubernetes/cluster/"+name)
	}
	w.awaitPods("tidefill-redis", 1)
	w.awaitReplicas("all", 3)
}

// The chart is installed with upstreams alone, upgraded to pools, and uninstalled, by helm. The key
// that it creates stays the same.
func TestChartInstalled(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it builds helm")
	}
	installKEDA(t)
	w := newWorld(t)
	newWorldIn(t, metav1.ObjectMeta{Name: "chat"}) // of a pool
	helm := newHelm(t, w.namespace)
	helm("install", "tidefill", deploy+"helm/tidefill",
		"--set", "config.upstreams[0].url=http://vllm:8000")
	key := w.key()
	if len(key) < 32 {
		t.Errorf("the key is %q", key)
	}
	account := fmt.Sprintf("system:serviceaccount:%s:tidefill", w.namespace)
	if got := granted(t, account, w.namespace); len(got) > 0 {
		t.Errorf("without pools the daemon may %v", got)
	}

	helm("upgrade", "tidefill", deploy+"helm/tidefill",
		"-f", "../deploy/testdata/values/pools.yaml", "--set", "networkPolicy.enabled=true")
	if got := w.key(); got != key {
		t.Errorf("the upgrade has changed the key from %s to %s", key, got)
	}
	cfg, pools := w.config("tidefill")
	for _, role := range kube.Roles("tidefill", w.namespace, cfg, pools) {
		got := granted(t, account, role.Namespace)
		if diff := cmp.Diff(role.Rules, got, inAnyOrder); diff != "" {
			t.Errorf("permissions in %s: -needed +granted\n%s", role.Namespace, diff)
		}
	}

	helm("uninstall", "tidefill")
	list, err := plane.admin.AppsV1().StatefulSets(w.namespace).List(t.Context(),
		metav1.ListOptions{})
	if err != nil || len(list.Items) > 0 {
		t.Errorf("%d StatefulSets are left (%v)", len(list.Items), err)
	}
}

// newHelm builds helm and returns a function that runs it as the administrator.
func newHelm(t *testing.T, namespace string) func(args ...string) {
	t.Helper()
	dir := t.TempDir()
	program, kubeconfig := filepath.Join(dir, "helm"), filepath.Join(dir, "kubeconfig")
	build := exec.Command("go", "build", "-C", "../deploy", "-o", program,
		"helm.sh/helm/v4/cmd/helm")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build helm: %v\n%s", err, output)
	}
	err := plane.kubeconfig(kubeconfig, plane.address(), "admin", namespace, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	return func(args ...string) {
		t.Helper()
		c := exec.Command(program, args...)
		c.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+dir)
		if output, err := c.CombinedOutput(); err != nil {
			t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, output)
		}
	}
}

// config returns what the configuration in a ConfigMap says of Kubernetes. It is read without the
// package config, whose dependencies have other versions than the API server's; test/deploy does.
func (w *world) config(name string) (kube.Config, []kube.Watched) {
	w.t.Helper()
	m, err := plane.admin.CoreV1().ConfigMaps(w.namespace).Get(w.t.Context(), name,
		metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	cfg := struct {
		Kubernetes kube.Config
		Pools      []struct {
			Name       string
			Kubernetes kube.PoolConfig
		}
	}{Kubernetes: kube.DefaultConfig()}
	if err := yaml.Unmarshal([]byte(m.Data["tidefill.yaml"]), &cfg); err != nil {
		w.t.Fatal(err)
	}
	var pools []kube.Watched
	for _, p := range cfg.Pools {
		pools = append(pools, kube.Watched{Name: p.Name, PoolConfig: p.Kubernetes})
	}
	return cfg.Kubernetes, pools
}

// key returns the key that the chart has created.
func (w *world) key() string {
	w.t.Helper()
	s, err := plane.admin.CoreV1().Secrets(w.namespace).Get(w.t.Context(), "tidefill-keys",
		metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return string(s.Data["key"])
}

// service creates a Service without pods.
func (w *world) service(name string, port int32) {
	w.t.Helper()
	_, err := plane.admin.CoreV1().Services(w.namespace).Create(w.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": name},
			Ports: []corev1.ServicePort{{Port: port}}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

// bind puts a pod on the node, as the scheduler would.
func (w *world) bind(pod string) {
	w.t.Helper()
	err := plane.admin.CoreV1().Pods(w.namespace).Bind(w.t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

// inAnyOrder compares rules as sets.
var inAnyOrder = cmp.Options{
	cmpopts.SortSlices(func(a, b rbacv1.PolicyRule) bool {
		return fmt.Sprint(a) < fmt.Sprint(b)
	}), cmpopts.EquateEmpty(),
}

// granted returns what a user may do in a namespace, beyond what every user may.
func granted(t *testing.T, user, namespace string) (rules []rbacv1.PolicyRule) {
	t.Helper()
	may := func(user string) []authorizationv1.ResourceRule {
		config, err := plane.configFor(plane.address(), user)
		if err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		review, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(
			context.Background(), &authorizationv1.SelfSubjectRulesReview{
				Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
			}, metav1.CreateOptions{})
		if err != nil || review.Status.Incomplete {
			t.Fatalf("rules of %s: %v, %s", user, err, review.Status.EvaluationError)
		}
		return review.Status.ResourceRules
	}
	everybody := may("nobody")
	for _, r := range may(user) {
		if !slices.ContainsFunc(everybody, func(o authorizationv1.ResourceRule) bool {
			return cmp.Equal(o, r)
		}) {
			rules = append(rules, rbacv1.PolicyRule{APIGroups: r.APIGroups, Verbs: r.Verbs,
				Resources: r.Resources, ResourceNames: r.ResourceNames})
		}
	}
	return rules
}
