package kube

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidefill/tidefill/autoscale"
)

// noon is when all pods of these tests are created.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(d)) }

// newTestPod returns a pod that was created at noon and has not started.
func newTestPod(name, address string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: at(0),
		Labels: map[string]string{"app": "vllm"}}}
	p.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{
		{Name: "http", ContainerPort: 8000}}}}
	p.Status.PodIP = address
	for _, edit := range edits {
		edit(p)
	}
	return p
}

// readiness sets when a pod started, and when it became ready or lost it.
func readiness(started time.Duration, is corev1.ConditionStatus, since time.Duration) func(
	*corev1.Pod) {
	return func(p *corev1.Pod) {
		start := at(started)
		p.Status.StartTime = &start
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: is,
			LastTransitionTime: at(since)}}
	}
}

func ready(since time.Duration) func(*corev1.Pod) {
	return readiness(time.Second, corev1.ConditionTrue, since)
}

func ending(since time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		when, grace := at(since+30*time.Second), int64(30)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &when, &grace
	}
}

func labeled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[key] = value }
}

func podsOf(list ...*corev1.Pod) map[string]pod {
	all := map[string]pod{}
	for _, p := range list {
		all[p.Name] = newPod(p)
	}
	return all
}

func composed(t *testing.T, cfg PoolConfig, o objects) State {
	t.Helper()
	return newComposer("batch", cfg.withDefaults("models")).compose(noon.Add(time.Hour), o)
}

func checkRunners(t *testing.T, got State, want ...Runner) {
	t.Helper()
	for i := range want {
		want[i].Pool = "batch"
	}
	if diff := cmp.Diff(want, got.Runners, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("runners, -want +got:\n%s", diff)
	}
}

// Metrics are where the usual annotation of a pod says.
func TestMetricsOfPods(t *testing.T) {
	for annotated, want := range map[string]string{"": "http://10.0.0.1:8000/metrics",
		"/prometheus/metrics": "http://10.0.0.1:8000/prometheus/metrics",
		"stats":               "http://10.0.0.1:8000/stats"} {
		s := composed(t, PoolConfig{Selector: "app=vllm"}, objects{pods: podsOf(
			newTestPod("a", "10.0.0.1", func(p *corev1.Pod) {
				p.Annotations = map[string]string{"prometheus.io/path": annotated}
			}))})
		if got := s.Runners[0].MetricsURL(); got != want {
			t.Errorf("%q: metrics are at %s, want %s", annotated, got, want)
		}
	}
}

func TestPhasesOfPods(t *testing.T) {
	minutes := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	s := composed(t, PoolConfig{Selector: "app=vllm"}, objects{pods: podsOf(
		newTestPod("a-pending", ""),
		newTestPod("b-loading", "10.0.0.2", readiness(time.Minute, corev1.ConditionFalse,
			time.Minute)),
		newTestPod("c-ready", "10.0.0.3", ready(4*time.Minute)),
		newTestPod("d-restarted", "10.0.0.4", readiness(time.Minute, corev1.ConditionFalse,
			9*time.Minute)),
		newTestPod("e-ending", "fd00::5", ready(4*time.Minute), ending(8*time.Minute)),
		newTestPod("f-evicted", "10.0.0.6", func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
		}),
	)})
	checkRunners(t, s,
		Runner{Name: "a-pending", Pod: "a-pending", Phase: autoscale.Starting, Since: noon},
		Runner{Name: "b-loading", Pod: "b-loading", URL: "http://10.0.0.2:8000",
			Phase: autoscale.Starting, Since: noon},
		Runner{Name: "c-ready", Pod: "c-ready", URL: "http://10.0.0.3:8000",
			Phase: autoscale.Ready, Since: minutes(4)},
		Runner{Name: "d-restarted", Pod: "d-restarted", URL: "http://10.0.0.4:8000",
			Phase: autoscale.Starting, Since: minutes(9)},
		Runner{Name: "e-ending", Pod: "e-ending", URL: "http://[fd00::5]:8000",
			Phase: autoscale.Draining, Since: minutes(8)},
	)
	want := []autoscale.Replica{
		{ID: "a-pending", Phase: autoscale.Starting, Since: noon},
		{ID: "b-loading", Phase: autoscale.Starting, Since: noon},
		{ID: "c-ready", Phase: autoscale.Ready, Since: minutes(4)},
		{ID: "d-restarted", Phase: autoscale.Starting, Since: minutes(9)},
		{ID: "e-ending", Phase: autoscale.Draining, Since: minutes(8)},
	}
	if diff := cmp.Diff(want, s.Replicas); diff != "" {
		t.Errorf("replicas, -want +got:\n%s", diff)
	}
	if s.Desired != Unknown || s.Err != nil {
		t.Errorf("got %d desired replicas and the error %v", s.Desired, s.Err)
	}
}

func TestPortsOfPods(t *testing.T) {
	sidecar := func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Ports: []corev1.ContainerPort{
			{Name: "router", ContainerPort: 8200},
			{Name: "gossip", ContainerPort: 7000, Protocol: corev1.ProtocolUDP},
		}}}
	}
	for _, test := range []struct{ port, url, fault string }{
		{"9000", "http://10.0.0.1:9000", ""},
		{"router", "http://10.0.0.1:8200", ""},
		{"", "", "pod a declares 2 ports, 8000 (http), 8200 (router); set " +
			"pools[].kubernetes.port to the one of its runner"},
		{"gossip", "", "pod a has no port gossip, only 8000 (http), 8200 (router); correct " +
			"pools[].kubernetes.port"},
	} {
		s := composed(t, PoolConfig{Selector: "app=vllm", Port: test.port},
			objects{pods: podsOf(newTestPod("a", "10.0.0.1", ready(0), sidecar))})
		checkRunners(t, s, Runner{Name: "a", Pod: "a", URL: test.url, Phase: autoscale.Ready,
			Since: noon})
		if got := errorText(s.Err); got != test.fault {
			t.Errorf("port %q: got the error %q, want %q", test.port, got, test.fault)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// An InferencePool with several target ports has several runners in each pod, which is one replica.
func TestInferencePoolPorts(t *testing.T) {
	p := newInferencePool(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "inference.networking.k8s.io/v1",
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "vllm"}},
			"targetPorts": []any{map[string]any{"number": int64(8000)},
				map[string]any{"number": int64(8001)}},
		},
	}})
	if p.err != nil || p.selector["app"] != "vllm" {
		t.Fatalf("got %+v", p)
	}
	s := composed(t, PoolConfig{InferencePool: "vllm", Prefill: "role=prefill",
		Decode: "role=decode", Scheme: "https"}, objects{ports: p.ports, pods: podsOf(
		newTestPod("a", "10.0.0.1", ready(0), labeled("role", "prefill")),
		newTestPod("b", "10.0.0.2", ready(0), labeled("role", "decode")))})
	runner := func(pod, port, address string, role Role) Runner {
		return Runner{Name: pod + ":" + port, Pod: pod, URL: "https://" + address + ":" + port,
			Role: role, Phase: autoscale.Ready, Since: noon}
	}
	checkRunners(t, s,
		runner("a", "8000", "10.0.0.1", Prefill), runner("a", "8001", "10.0.0.1", Prefill),
		runner("b", "8000", "10.0.0.2", Decode), runner("b", "8001", "10.0.0.2", Decode))
	if len(s.Replicas) != 1 || s.Replicas[0].ID != "b" {
		t.Errorf("got the replicas %v, want one for each pod for tokens", s.Replicas)
	}
}

func TestOldInferencePool(t *testing.T) {
	object := map[string]any{"apiVersion": "inference.networking.x-k8s.io/v1alpha2",
		"spec": map[string]any{"selector": map[string]any{"app": "vllm"},
			"targetPortNumber": int64(8000)}}
	p := newInferencePool(&unstructured.Unstructured{Object: object})
	if p.err != nil || p.selector["app"] != "vllm" || len(p.ports) != 1 || p.ports[0] != 8000 {
		t.Errorf("got %+v", p)
	}
	for _, broken := range []map[string]any{
		{}, {"spec": "x"}, {"spec": map[string]any{"selector": map[string]any{"a": int64(1)}}},
		{"spec": map[string]any{"selector": map[string]any{"app": "vllm"}}},
		{"spec": map[string]any{"selector": map[string]any{"app": "vllm"},
			"targetPorts": []any{"x", map[string]any{"number": "8000"}}}},
	} {
		broken["apiVersion"] = "inference.networking.x-k8s.io/v1alpha2"
		if p := newInferencePool(&unstructured.Unstructured{Object: broken}); p.err == nil {
			t.Errorf("%v was read as %+v", broken, p)
		}
	}
}

func sliceOf(family discoveryv1.AddressType, port int32, endpoints ...discoveryv1.Endpoint) slice {
	name := "http"
	return newSlice(&discoveryv1.EndpointSlice{AddressType: family, Endpoints: endpoints,
		Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}}})
}

func endpointOf(pod, address string, ready bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{address},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready}}
	if pod != "" {
		e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: pod}
	}
	return e
}

func TestEndpointsOfAService(t *testing.T) {
	s := composed(t, PoolConfig{Service: "vllm", Port: "80"}, objects{
		service: service{selector: labels.Set{"app": "vllm"}, ports: []port{
			{"http", 80}, {"metrics", 9090}}},
		slices: map[string]slice{
			"vllm-1": sliceOf(discoveryv1.AddressTypeIPv6, 8000, endpointOf("a", "fd00::1", true)),
			"vllm-2": sliceOf(discoveryv1.AddressTypeIPv4, 8000,
				endpointOf("a", "10.0.0.1", true), endpointOf("b", "10.0.0.2", false),
				endpointOf("c", "10.0.0.3", true), endpointOf("d", "10.0.0.4", true)),
		},
		pods: podsOf(newTestPod("a", "fd00::1", ready(time.Minute)), newTestPod("b", "10.0.0.2"),
			newTestPod("c", "10.0.0.3", ready(time.Minute), ending(2*time.Minute)),
			newTestPod("d", "10.0.0.4"), newTestPod("e", "10.0.0.5", ready(time.Minute))),
	})
	checkRunners(t, s,
		// The pod's primary address, of two.
		Runner{Name: "a", Pod: "a", URL: "http://[fd00::1]:8000", Phase: autoscale.Ready,
			Since: noon.Add(time.Minute)},
		Runner{Name: "b", Pod: "b", URL: "http://10.0.0.2:8000", Phase: autoscale.Starting,
			Since: noon},
		Runner{Name: "c", Pod: "c", URL: "http://10.0.0.3:8000", Phase: autoscale.Draining,
			Since: noon.Add(2 * time.Minute)},
		// An endpoint that is published before its pod is ready.
		Runner{Name: "d", Pod: "d", URL: "http://10.0.0.4:8000", Phase: autoscale.Starting,
			Since: noon},
		// A pod that is no endpoint yet.
		Runner{Name: "e", Pod: "e", Phase: autoscale.Starting, Since: noon},
	)
}

// A Service without a selector has endpoints that are no pods.
func TestEndpointsByHand(t *testing.T) {
	c := newComposer("batch", PoolConfig{Service: "vllm"}.withDefaults("models"))
	o := objects{slices: map[string]slice{"vllm-1": sliceOf(discoveryv1.AddressTypeIPv6, 8000,
		endpointOf("", "fd00::1", true))}}
	want := Runner{Name: "[fd00::1]:8000", URL: "http://[fd00::1]:8000", Phase: autoscale.Ready,
		Since: noon}
	checkRunners(t, c.compose(noon, o), want)
	checkRunners(t, c.compose(noon.Add(time.Minute), o), want) // seen first at noon
}

func TestPortsOfAService(t *testing.T) {
	name, metrics, number, other := "http", "metrics", int32(8000), int32(9090)
	s := newSlice(&discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{
		endpointOf("", "10.0.0.1", true)}, Ports: []discoveryv1.EndpointPort{
		{Name: &name, Port: &number}, {Name: &metrics, Port: &other}}})
	svc := service{ports: []port{{"http", 80}, {"metrics", 8000}}}
	for _, test := range []struct {
		port  string
		want  int32
		fault string
	}{
		{"80", 8000, ""}, {"http", 8000, ""}, {"9090", 9090, ""},
		{"8000", 9090, ""}, // the Service's port 8000 leads to 9090
		{"", 0, "the Service has 2 ports, 8000 (http), 9090 (metrics); set " +
			"pools[].kubernetes.port to the one of the runners"},
		{"grpc", 0, "the Service has no port grpc, only 8000 (http), 9090 (metrics); correct " +
			"pools[].kubernetes.port"},
	} {
		got, err := svc.port(test.port, s)
		if got != test.want || errorText(err) != test.fault {
			t.Errorf("port %q: got %d, %v", test.port, got, err)
		}
	}
}

// Pods that the target wants and that do not exist count as starting, since they are wanted.
func TestMissingPods(t *testing.T) {
	c := newComposer("batch", PoolConfig{Selector: "app=vllm",
		Target: Target{Name: "vllm"}}.withDefaults("models"))
	of := func(desired int) objects {
		return objects{target: scale{true, desired, labels.SelectorFromSet(labels.Set{
			"app": "vllm"})}, pods: podsOf(newTestPod("a", "10.0.0.1", ready(0)),
			newTestPod("b", "10.0.0.2", ready(0), ending(0)),
			newTestPod("c", "10.0.0.3", ready(0), labeled("app", "other")))}
	}
	minute := noon.Add(time.Minute)
	for _, test := range []struct {
		now     time.Time
		desired int
		want    []time.Time
	}{
		{noon, 2, []time.Time{noon}},
		{minute, 3, []time.Time{noon, minute}},
		{minute.Add(time.Hour), 2, []time.Time{noon}},
		{minute, 1, nil},
		{minute, 0, nil},
		{minute, 2, []time.Time{minute}},
	} {
		s := c.compose(test.now, of(test.desired))
		var got []time.Time
		for _, r := range s.Replicas {
			if IsMissing(r.ID) && r.Phase == autoscale.Starting {
				got = append(got, r.Since)
			}
		}
		if s.Desired != test.desired || !cmp.Equal(got, test.want) {
			t.Errorf("%d desired: got %d, missing since %v, want %v", test.desired, s.Desired,
				got, test.want)
		}
	}
}

// A line needs both sides: replicas are those of the side of which fewer are ready, or those of the
// target.
func TestReplicasOfSeparateSides(t *testing.T) {
	cfg := PoolConfig{Selector: "app=vllm", Prefill: "role=prefill", Decode: "role=decode"}
	side := func(name, role string, edits ...func(*corev1.Pod)) *corev1.Pod {
		return newTestPod(name, "10.0.0.1", append(edits, labeled("role", role))...)
	}
	check := func(cfg PoolConfig, target scale, pods []*corev1.Pod, want ...string) {
		t.Helper()
		var got []string
		s := composed(t, cfg, objects{pods: podsOf(pods...), target: target})
		for _, r := range s.Replicas {
			got = append(got, r.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
	p0, p1 := side("p0", "prefill", ready(0)), side("p1", "prefill", ready(0))
	d0, d1 := side("d0", "decode", ready(0)), side("d1", "decode", ready(0))
	check(cfg, scale{}, []*corev1.Pod{p0, p1, d0}, "d0")
	check(cfg, scale{}, []*corev1.Pod{p0, p1, d0, d1}, "d0", "d1")
	check(cfg, scale{}, []*corev1.Pod{p0, side("p1", "prefill"), d0, d1}, "p0", "p1")
	cfg.Target.Name = "vllm-prefill"
	selector, err := labels.Parse("role=prefill")
	if err != nil {
		t.Fatal(err)
	}
	check(cfg, scale{known: true, desired: 3, selector: selector}, []*corev1.Pod{p0, p1, d0},
		"p0", "p1", "missing/0")
	check(cfg, scale{}, []*corev1.Pod{p0, p1, d0}, "d0")
}
