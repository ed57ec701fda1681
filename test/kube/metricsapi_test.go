package kube_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/tidefill/tidefill/autoscale/kube"
)

// measured is when the values of the metrics server were measured.
var measured = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// answers are what the metrics server shows, by path; NS stands for the namespace.
var answers = map[string]string{
	"/apis/custom.metrics.k8s.io/v1beta2/namespaces/NS/pods/*/vllm_running": `{
		"kind": "MetricValueList", "apiVersion": "custom.metrics.k8s.io/v1beta2", "metadata": {},
		"items": [
			{"describedObject": {"kind": "Pod", "namespace": "NS", "name": "a"},
				"metric": {"name": "vllm_running"}, "timestamp": "2026-01-02T12:00:00Z",
				"value": "3"},
			{"describedObject": {"kind": "Pod", "namespace": "NS", "name": "b"},
				"metric": {"name": "vllm_running"}, "timestamp": "2026-01-02T12:00:00Z",
				"value": "-1"}]}`,
	"/apis/external.metrics.k8s.io/v1beta1/namespaces/NS/kv": `{
		"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1",
		"metadata": {}, "items": [
			{"metricName": "kv", "metricLabels": {"instance": "a"},
				"timestamp": "2026-01-02T12:00:00Z", "value": "250m"}]}`,
	"/apis/external.metrics.k8s.io/v1beta1/namespaces/NS/queue": `{
		"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1",
		"metadata": {}, "items": [
			{"metricName": "queue", "metricLabels": {"shard": "0"},
				"timestamp": "2026-01-02T12:00:05Z", "value": "4"},
			{"metricName": "queue", "metricLabels": {"shard": "1"},
				"timestamp": "2026-01-02T12:00:00Z", "value": "5"}]}`,
	"/apis/metrics.k8s.io/v1beta1/namespaces/NS/pods": `{
		"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {},
		"items": [{"metadata": {"name": "a", "namespace": "NS"},
			"timestamp": "2026-01-02T12:00:00Z", "window": "30s",
			"containers": [{"name": "vllm", "usage": {"cpu": "1500m", "memory": "2Gi"}},
				{"name": "router", "usage": {"cpu": "500m", "memory": "1Gi"}}]}]}`,
}

// metricsAPIs are the group versions of the metrics server.
var metricsAPIs = []schema.GroupVersion{{Group: "custom.metrics.k8s.io", Version: "v1beta2"},
	{Group: "external.metrics.k8s.io", Version: "v1beta1"},
	{Group: "metrics.k8s.io", Version: "v1beta1"}}

// serveMetrics runs a metrics server behind the API server's aggregator until the test ends.
func (w *world) serveMetrics() {
	w.t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(
		func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			for path, answer := range answers {
				if strings.ReplaceAll(path, "NS", w.namespace) == r.URL.Path {
					fmt.Fprint(rw, strings.ReplaceAll(answer, "NS", w.namespace))
					return
				}
			}
			for _, v := range metricsAPIs {
				if r.URL.Path == "/apis/"+v.String() {
					fmt.Fprintf(rw, `{"kind": "APIResourceList", "apiVersion": "v1", `+
						`"groupVersion": %q, "resources": []}`, v)
					return
				}
			}
			http.NotFound(rw, r)
		}))
	certificate, key, err := plane.ca.issue("metrics-server")
	if err != nil {
		w.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		w.t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	w.t.Cleanup(server.Close)
	// The only Service that may lead to a loopback address.
	_, err = plane.admin.CoreV1().Services(w.namespace).Create(w.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "metrics"}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, v := range metricsAPIs {
		w.register(v, server.Listener.Addr().(*net.TCPAddr).Port)
	}
}

// register makes the API server pass the requests for an API on to a port.
func (w *world) register(v schema.GroupVersion, port int) {
	w.t.Helper()
	client, err := dynamic.NewForConfig(plane.config)
	if err != nil {
		w.t.Fatal(err)
	}
	services := client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io",
		Version: "v1", Resource: "apiservices"})
	name := v.Version + "." + v.Group
	_, err = services.Create(w.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{"group": v.Group, "version": v.Version,
			"insecureSkipTLSVerify": true, "groupPriorityMinimum": int64(100),
			"versionPriority": int64(100), "service": map[string]any{"name": "metrics",
				"namespace": w.namespace, "port": int64(port)}},
	}}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	until(w.t, func() string {
		err := plane.admin.Discovery().RESTClient().Get().AbsPath("/apis/" + v.String()).Do(
			w.t.Context()).Error()
		if err != nil {
			return err.Error()
		}
		return ""
	})
	w.t.Cleanup(func() {
		// The context of the test has ended.
		err := services.Delete(context.Background(), name, metav1.DeleteOptions{})
		if err != nil {
			w.t.Error(err)
		}
	})
}

// metricsConfig reads all metrics of the server.
var metricsConfig = kube.Metrics{Running: kube.Metric{Pods: "vllm_running"},
	Waiting: kube.Metric{External: "queue", Selector: "model=m"},
	KVUsed:  kube.Metric{External: "kv", PodLabel: "instance"}, Resources: true}

func TestReadings(t *testing.T) {
	w := newWorld(t)
	w.serveMetrics()
	d := w.daemon(options{}, kube.Watched{Name: "batch", PoolConfig: kube.PoolConfig{
		Selector: "app=vllm", Metrics: metricsConfig}})
	d.await("batch", "")
	readings, err := d.Readings(t.Context(), "batch")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range readings {
		got = append(got, fmt.Sprintf("%s %v %v %v %v %v", r.Pod, r.Running.Value,
			r.Waiting.Value, r.KVUsed.Value, r.CPU.Value, r.Memory.Value))
	}
	want := []string{" NaN 9 NaN NaN NaN", "a 3 NaN 0.25 2 3.221225472e+09",
		"b NaN NaN NaN NaN NaN"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for _, v := range []kube.Value{readings[0].Waiting, readings[1].Running, readings[1].KVUsed,
		readings[1].CPU} {
		if !v.At.Equal(measured) {
			t.Errorf("got the time %v of the value %v, want %v", v.At, v.Value, measured)
		}
	}
	if v := readings[2].KVUsed; !math.IsNaN(v.Value) || !v.At.IsZero() {
		t.Errorf("got %v for a metric that is absent", v)
	}
}
