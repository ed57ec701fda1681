package telemetry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers/prometheus"
)

// A real Prometheus scrapes an engine by three jobs: one whose scrapes are a minute old, one that
// reads all, and one that keeps some metrics.
func TestAnEngineOfSeveralJobsInPrometheus(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		value, stamp := 5, ""
		if r.URL.Path == "/old" {
			value, stamp = 2, fmt.Sprintf(" %d", time.Now().Add(-time.Minute).UnixMilli())
		}
		for _, name := range []string{"num_requests_running", "num_requests_waiting",
			"generation_tokens_total"} {
			fmt.Fprintf(w, "vllm:%s{engine=\"0\"} %d%s\n", name, value, stamp)
		}
	}))
	defer server.Close()
	configuration := "global: {scrape_interval: 1s}\nscrape_configs:\n"
	for _, job := range []string{`a, metrics_path: /old`, `b`, `0, metric_relabel_configs: [{` +
		`source_labels: [__name__], regex: "vllm:num_.*", action: keep}]`} {
		configuration += fmt.Sprintf("- {static_configs: [{targets: [%q], labels: {role: r}}], "+
			"job_name: %s}\n", server.Listener.Addr(), job)
	}
	url, _ := prometheus.Start(t, configuration)
	q := readRunner(t, url)
	deadline := time.Now().Add(30 * time.Second)
	for {
		jobs, err := q.groups.query.query(t.Context(), `vllm:num_requests_running`)
		if len(jobs) == 3 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v, %v: want the series of three jobs", jobs, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	samples, err := q.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := samples[0].Reading
	if age := time.Since(r.Sampled); r.Running != 5 || r.Waiting != 5 || r.OutputTokens != 5 ||
		age > 30*time.Second {
		t.Errorf("got %+v, %v old, want 5 of each, some seconds old", r, age)
	}
}
