package telemetry

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// startPrometheus runs a Prometheus with a configuration until the test ends.
func startPrometheus(t *testing.T, configuration string) (url string) {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		if program, err = filepath.Abs("../bin/prometheus"); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := listener.Addr().String()
	listener.Close()
	var log bytes.Buffer
	cmd := exec.Command(program, "--config.file", config, "--storage.tsdb.path",
		filepath.Join(dir, "data"), "--web.listen-address", listen)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v; make setup fetches it", err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("log of Prometheus:\n%s", log.String())
		}
	})
	return "http://" + listen
}

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
	q := readRunner(t, startPrometheus(t, configuration))
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
