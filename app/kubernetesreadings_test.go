package app_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/registry"
)

// apiServer answers as the API server of a cluster with two pods and a metrics adapter. Its watches
// show no changes.
func apiServer(t *testing.T, ports [2]string) (kubeconfig string) {
	t.Helper()
	now := time.Now().UTC().Format(time.RFC3339)
	pod := func(name, port string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"llm","uid":%q,`+
			`"resourceVersion":"1","labels":{"app":"vllm"},"creationTimestamp":%q},`+
			`"spec":{"containers":[{"name":"vllm","ports":[{"containerPort":%s}]}]},`+
			`"status":{"phase":"Running","podIP":"127.0.0.1","conditions":[{"type":"Ready",`+
			`"status":"True","lastTransitionTime":%q}]}}`, name, name, now, port, now)
	}
	value := func(pod, value string) string {
		return fmt.Sprintf(`{"describedObject":{"kind":"Pod","namespace":"llm","name":%q},`+
			`"metric":{"name":"vllm_running"},"timestamp":%q,"value":%q}`, pod, now, value)
	}
	custom := "/apis/custom.metrics.k8s.io/v1beta2"
	answers := map[string]string{
		"/api/v1/namespaces/llm/pods": `{"kind":"PodList","apiVersion":"v1",` +
			`"metadata":{"resourceVersion":"1"},"items":[` + pod("a", ports[0]) + "," +
			pod("b", ports[1]) + `]}`,
		"/api": `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{` +
			`"name":"custom.metrics.k8s.io","versions":[{"groupVersion":` +
			`"custom.metrics.k8s.io/v1beta2","version":"v1beta2"}]}]}`,
		custom: `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":` +
			`"custom.metrics.k8s.io/v1beta2","resources":[]}`,
		custom + "/namespaces/llm/pods/*/vllm_running": `{"kind":"MetricValueList",` +
			`"apiVersion":"custom.metrics.k8s.io/v1beta2","metadata":{},"items":[` +
			value("a", "7") + "," + value("b", "77") + `]}`,
		"/apis/external.metrics.k8s.io/v1beta1/namespaces/llm/queue": `{` +
			`"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1",` +
			`"metadata":{},"items":[{"metricName":"queue","metricLabels":{},"timestamp":"` + now +
			`","value":"6"}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, known := answers[r.URL.Path]
		switch {
		case !known:
			http.NotFound(w, r)
		case r.URL.Query().Get("watch") != "":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			fmt.Fprint(w, answer)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: "`+server.URL+`"}}], users: [{name: u, user: {}}],
contexts: [{name: c, context: {cluster: c, user: u, namespace: llm}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// portOf returns the port of a server.
func portOf(t *testing.T, url string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// What the metrics APIs of Kubernetes show is read for runners that show no metrics page, and for
// no others.
func TestMetricsAPIsAreRead(t *testing.T) {
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
	}))
	t.Cleanup(bare.Close)
	full := apptest.StartRunner(t, nil)
	cfg := apptest.Config(t.TempDir())
	cfg.Kubernetes.Kubeconfig = apiServer(t, [2]string{portOf(t, bare.URL), portOf(t, full)})
	cfg.Kubernetes.Lease = ""
	cfg.Kubernetes.MetricsEvery = 100 * time.Millisecond
	cfg.Telemetry.Every = 10 * time.Millisecond
	cfg.Pools = []config.PoolConfig{{Pool: registry.Pool{Name: "night",
		Models: []string{"m"}, Max: 3}, Kubernetes: kube.PoolConfig{Selector: "app=vllm",
		Metrics: kube.Metrics{Running: kube.Metric{Pods: "vllm_running"},
			Waiting: kube.Metric{External: "queue"}}}}}
	a, _ := apptest.Start(t, cfg, app.Options{})
	page := func(path string) string {
		_, text := answerOf(t, http.MethodGet, a.AdminURL()+path)
		return text
	}
	await := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(60 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("timeout: %s\n%s\n%s", what, page("/admin/pools"), page("/metrics"))
			}
		}
	}
	await("the pool's six requests that wait are spread over its two runners", func() bool {
		return strings.Contains(page("/admin/pools"), `"running":7,"waiting":3`) &&
			strings.Contains(page("/metrics"), `tidefill_reading_timestamp_seconds{`+
				`source="kubernetes",target="a"}`)
	})
	shown := func() bool { return strings.Contains(page("/admin/pools"), `"running":77`) }
	await("the runner's own page is read", func() bool {
		return strings.Contains(page("/metrics"), `source="metrics",target="b"}`) && !shown()
	})
	for range 20 { // readings of the metrics API come every 100 ms
		if time.Sleep(20 * time.Millisecond); shown() {
			t.Fatalf("the runner with a page of its own is shown as the metrics API has it: %s",
				page("/admin/pools"))
		}
	}
}
