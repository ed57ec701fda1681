package kube_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/autoscale/kube"
)

// waitLimit is how long a test waits for what must happen. client-go waits up to 30 s before it
// connects again.
const waitLimit = 90 * time.Second

// world is a namespace with the objects of a test.
type world struct {
	t         *testing.T
	namespace string
	addresses int // given to pods
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldIn(t, metav1.ObjectMeta{GenerateName: "test-"})
}

// newWorldIn creates the namespace of a world.
func newWorldIn(t *testing.T, meta metav1.ObjectMeta) *world {
	t.Helper()
	namespace, err := plane.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, namespace: namespace.Name}
	_, err = plane.admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	return w
}

// node is the node of all pods.
const node = "node-1"

// until waits until a condition holds. The condition returns what is missing; empty: nothing.
func until(t *testing.T, missing func() string) {
	t.Helper()
	deadline := time.NewTimer(waitLimit)
	defer deadline.Stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		what := missing()
		if what == "" {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("waited %v: %s", waitLimit, what)
		case <-ticker.C:
		}
	}
}

// deployment creates a Deployment of model servers, and a Service of the same name.
func (w *world) deployment(name string, replicas int32) {
	w.t.Helper()
	w.modelServers(name, replicas, 30*time.Second)
	_, err := plane.admin.CoreV1().Services(w.namespace).Create(w.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": name},
			Ports: []corev1.ServicePort{
				{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

// modelServers creates a Deployment of model servers that have a time to end in whole seconds.
func (w *world) modelServers(name string, replicas int32, toEnd time.Duration) {
	w.t.Helper()
	labels := map[string]string{"app": name}
	grace := int64(toEnd.Seconds())
	_, err := plane.admin.AppsV1().Deployments(w.namespace).Create(w.t.Context(),
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: &grace,
						Containers: []corev1.Container{container()}},
				},
			},
		}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

func container() corev1.Container {
	return corev1.Container{Name: "vllm", Image: "vllm", Ports: []corev1.ContainerPort{
		{Name: "http", ContainerPort: 8000}}}
}

// pod creates a pod on the node that has not started.
func (w *world) pod(name string, labels map[string]string) {
	w.t.Helper()
	_, err := plane.admin.CoreV1().Pods(w.namespace).Create(w.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{container()}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

// scale sets the replicas of a Deployment by its /scale, as the HPA does.
func (w *world) scale(name string, replicas int32) {
	w.t.Helper()
	api := plane.admin.AppsV1().Deployments(w.namespace)
	until(w.t, func() string {
		s, err := api.GetScale(w.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		s.Spec.Replicas = replicas
		if _, err = api.UpdateScale(w.t.Context(), name, s, metav1.UpdateOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// pods returns the names of the pods with the label app.
func (w *world) pods(app string) (names []string) {
	w.t.Helper()
	list, err := plane.admin.CoreV1().Pods(w.namespace).List(w.t.Context(),
		metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	return names
}

// awaitPods waits until there are so many pods with the label app.
func (w *world) awaitPods(app string, count int) (names []string) {
	w.t.Helper()
	until(w.t, func() string {
		if names = w.pods(app); len(names) != count {
			return fmt.Sprintf("%d pods, want %d", len(names), count)
		}
		return ""
	})
	return names
}

// ready reports a pod as running and ready at an address, as its kubelet would. An empty address is
// the next free one.
func (w *world) ready(name, address string) {
	w.t.Helper()
	w.addresses++
	if address == "" {
		address = fmt.Sprintf("10.1.0.%d", w.addresses)
	}
	now := metav1.Now()
	w.status(name, corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address,
		PodIPs: []corev1.PodIP{{IP: address}}, StartTime: &now,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
			LastTransitionTime: now}}})
}

func (w *world) status(name string, status corev1.PodStatus) {
	w.t.Helper()
	api := plane.admin.CoreV1().Pods(w.namespace)
	until(w.t, func() string {
		p, err := api.Get(w.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		p.Status = status
		if _, err := api.UpdateStatus(w.t.Context(), p, metav1.UpdateOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// end asks a pod to end.
func (w *world) end(name string) { w.t.Helper(); w.remove(name, metav1.DeleteOptions{}) }

// gone removes a pod, as its kubelet does when its processes have ended.
func (w *world) gone(name string) {
	w.t.Helper()
	now := int64(0)
	w.remove(name, metav1.DeleteOptions{GracePeriodSeconds: &now})
}

func (w *world) remove(name string, options metav1.DeleteOptions) {
	w.t.Helper()
	err := plane.admin.CoreV1().Pods(w.namespace).Delete(w.t.Context(), name, options)
	if err != nil {
		w.t.Fatal(err)
	}
}

// grant makes a user that has exactly these rules in the namespace.
func (w *world) grant(user string, roles []rbacv1.Role) {
	w.t.Helper()
	for _, role := range roles {
		role.Name = user
		api := plane.admin.RbacV1()
		_, err := api.Roles(role.Namespace).Update(w.t.Context(), &role, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			_, err = api.Roles(role.Namespace).Create(w.t.Context(), &role,
				metav1.CreateOptions{})
		}
		if err != nil {
			w.t.Fatal(err)
		}
		_, err = api.RoleBindings(role.Namespace).Create(w.t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}},
			RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: user},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			w.t.Fatal(err)
		}
	}
}

// daemon is a Cluster of a test.
type daemon struct {
	*kube.Cluster
	t        *testing.T
	registry *prometheus.Registry
	stop     func() // ends Run
}

// options are what a test changes of a daemon.
type options struct {
	user    string // has the least permissions by default
	address string // of the API server or a proxy
	node    string
	edit    func(*kube.Config)
	roles   func([]rbacv1.Role) []rbacv1.Role // edits the permissions
}

// daemon starts a Cluster whose user has the least permissions.
func (w *world) daemon(o options, pools ...kube.Watched) *daemon {
	w.t.Helper()
	cfg := kube.DefaultConfig()
	cfg.Kubeconfig = filepath.Join(w.t.TempDir(), "kubeconfig")
	cfg.Settle = 20 * time.Millisecond
	if o.edit != nil {
		o.edit(&cfg)
	}
	if o.user == "" {
		o.user = "tidefill-" + w.namespace
	}
	if o.address == "" {
		o.address = plane.address()
	}
	if o.node == "" {
		o.node = "node"
	}
	roles := kube.Roles("tidefill", w.namespace, cfg, pools)
	if o.roles != nil {
		roles = o.roles(roles)
	}
	w.grant(o.user, roles)
	if err := plane.kubeconfig(cfg.Kubeconfig, o.address, o.user, w.namespace); err != nil {
		w.t.Fatal(err)
	}
	d := &daemon{t: w.t, registry: prometheus.NewRegistry()}
	cluster, err := kube.New(cfg, pools, kube.Deps{Node: o.node, Registerer: d.registry,
		Logger: slog.New(slog.NewTextHandler(w.t.Output(), nil))})
	if err != nil {
		w.t.Fatal(err)
	}
	d.Cluster = cluster
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- cluster.Run(ctx) }()
	stopped := false
	d.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("run: %v", err)
		}
	}
	w.t.Cleanup(d.stop)
	return d
}

// await waits for the state of a pool that describe shows as want.
func (d *daemon) await(pool, want string) kube.State {
	d.t.Helper()
	var s kube.State
	until(d.t, func() string {
		var known bool
		s, known = d.State(pool)
		got := describe(s)
		if !known {
			got = "unknown"
		}
		if got == want {
			return ""
		}
		return fmt.Sprintf("the pool %s is %q, want %q (error: %v)", pool, got, want, s.Err)
	})
	return s
}

var phaseNames = map[autoscale.Phase]string{autoscale.Starting: "starting",
	autoscale.Ready: "ready", autoscale.Draining: "draining"}

// describe shows the runners of a state with their phases, how many are missing, and how many are
// desired.
func describe(s kube.State) string {
	var parts []string
	for _, r := range s.Runners {
		parts = append(parts, fmt.Sprintf("%s %s %s", r.Name, phaseNames[r.Phase], r.URL))
	}
	missing := 0
	for _, r := range s.Replicas {
		if kube.IsMissing(r.ID) {
			missing++
		}
	}
	if missing > 0 {
		parts = append(parts, fmt.Sprintf("missing %d", missing))
	}
	if s.Desired != kube.Unknown {
		parts = append(parts, fmt.Sprintf("desired %d", s.Desired))
	}
	return strings.Join(parts, ", ")
}
