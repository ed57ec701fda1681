package deploy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/internal/metriclist"
	"github.com/tidefill/tidefill/internal/testservers"
	"github.com/tidefill/tidefill/internal/testservers/prometheus"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/runner/emulator"
)

// embedded is the reason of metrics that only the cluster store has.
const embedded = "the store is embedded"

// lone is the reason of metrics about other processes.
const lone = "there is no other process"

const (
	// outside is the reason of metrics of interactive requests.
	outside = "no interactive requests pass through"
	// noFallback is the reason of metrics of fallbacks.
	noFallback = "no pool has a fallback"
)

// withoutData lists metrics that a healthy daemon has no series of, with the reason.
var withoutData = map[string]string{
	"tidefill_fallback_lines_total":                   noFallback,
	"tidefill_fallback_money_per_day":                 noFallback,
	"tidefill_fallback_money_today":                   noFallback,
	"tidefill_fallback_requests_total":                noFallback,
	"tidefill_fallback_tokens_total":                  noFallback,
	"tidefill_pool_request_places":                    outside,
	"tidefill_pool_requests":                          outside,
	"tidefill_use_case_attained_ratio":                outside,
	"tidefill_use_case_objective_seconds":             outside,
	"tidefill_use_case_token_seconds":                 outside,
	"tidefill_inline_requests_total":                  outside,
	"tidefill_inline_refused_total":                   outside,
	"tidefill_inline_requests":                        outside,
	"tidefill_inline_queue_wait_seconds":              outside,
	"tidefill_inline_first_token_seconds":             outside,
	"tidefill_inline_token_seconds":                   outside,
	"tidefill_deliveries_total":                       "no batch names a bucket",
	"tidefill_pool_warning":                           "nothing is wrong with the configuration",
	"tidefill_reading_degraded":                       "all sources give readings",
	"tidefill_reading_failures_total":                 "all sources give readings",
	"tidefill_reading_values_dropped_total":           "all values are good",
	"tidefill_http_refused_connections_total":         "there are few clients",
	"tidefill_http_slow_transfers_total":              "the client is fast",
	"tidefill_requests_dropped_total":                 "there is no endpoint picker",
	"tidefill_first_token_seconds":                    "streams are not trusted on a busy machine",
	"tidefill_streams_total":                          "streams are not trusted on a busy machine",
	"tidefill_pool_interactive_late_ratio":            "no gateway counts interactive requests",
	"tidefill_kubernetes_errors_total":                "no pool is in Kubernetes",
	"tidefill_kubernetes_pod_cpu_cores":               "no pool is in Kubernetes",
	"tidefill_kubernetes_pod_memory_bytes":            "no pool is in Kubernetes",
	"tidefill_kubernetes_state_age_seconds":           "no pool is in Kubernetes",
	"tidefill_kubernetes_watch_restarts_total":        "no pool is in Kubernetes",
	"tidefill_bucket_request_seconds":                 embedded,
	"tidefill_postgres_connection_wait_seconds_total": embedded,
	"tidefill_postgres_connections":                   embedded,
	"tidefill_postgres_connections_in_use":            embedded,
	"tidefill_postgres_connections_limit":             embedded,
	"tidefill_postgres_connections_opened_total":      embedded,
	"tidefill_postgres_failovers_total":               embedded,
	"tidefill_postgres_transaction_seconds":           embedded,
	"tidefill_postgres_unavailable_total":             embedded,
	"tidefill_segment_bytes_total":                    embedded,
	"tidefill_segment_commit_seconds":                 embedded,
	"tidefill_segment_records_total":                  embedded,
	"tidefill_redis_call_seconds":                     embedded,
	"tidefill_redis_failures_total":                   embedded,
	"tidefill_redis_up":                               embedded,
	"tidefill_scaler_request_seconds":                 "KEDA does not ask",
	"tidefill_snapshot_lag_seconds":                   lone,
	"tidefill_webhook_deliveries_total":               "no webhook is configured",
	"tidefill_webhook_pending_events":                 "no webhook is configured",
	"tidefill_scaler_requests_total":                  "KEDA does not ask",
	"tidefill_scaling_unknown":                        "the replicas are known",
}

// A real Prometheus that scrapes a busy daemon answers all queries of the dashboard and of the
// rules, with data wherever a busy daemon has some.
func TestQueriesHaveData(t *testing.T) {
	daemon := startBusyDaemon(t)
	prometheus := startPrometheus(t, strings.TrimPrefix(daemon.AdminURL(), "http://"))
	variables := strings.NewReplacer("$__rate_interval", "10s", "$pool", ".*", "$runner", ".*",
		"$job", "tidefill")
	deadline := time.Now().Add(90 * time.Second)
	for _, p := range loadDashboard(t).Panels {
		for _, target := range p.Targets {
			expression := variables.Replace(target.Expr)
			if needsData(expression) {
				awaitData(t, prometheus, expression, deadline)
			} else if _, err := query(prometheus, expression); err != nil {
				t.Errorf("%q: %v", p.Title, err)
			}
		}
	}
	for _, a := range alerts(t) {
		if _, err := query(prometheus, a.Expr); err != nil {
			t.Errorf("%s: %v", a.Alert, err)
		}
	}
	checkPage(t, daemon.AdminURL())
}

func needsData(expression string) bool {
	for metric := range withoutData {
		if strings.Contains(expression, metric) {
			return false
		}
	}
	return true
}

// checkPage checks that promtool finds no fault in the metrics page of a daemon, and that its
// metrics are those of the list, of the same types.
func checkPage(t *testing.T, admin string) {
	t.Helper()
	page := get(t, admin+"/metrics")
	check := exec.Command(testservers.Path(t, "promtool"), "check", "metrics")
	check.Stdin = bytes.NewReader(page)
	promtool(t, check)

	metrics, err := metriclist.List()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{} // types by name
	for row := range strings.Lines(string(page)) {
		if fields := strings.Fields(row); len(fields) == 4 && fields[1] == "TYPE" {
			shown[fields[2]] = fields[3]
		}
	}
	for _, m := range metrics {
		got, is := shown[m.Name]
		if _, rare := withoutData[m.Name]; !is && !rare {
			t.Errorf("the page of a busy daemon lacks %s", m.Name)
		} else if is && got != m.Type {
			t.Errorf("%s is listed as a %s, and is a %s", m.Name, m.Type, got)
		}
		delete(shown, m.Name)
	}
	for name := range shown {
		if strings.HasPrefix(name, "tidefill_") {
			t.Errorf("%s is on the page and not in the list", name)
		}
	}
}

// startBusyDaemon runs a daemon with the default policy, which has a batch in progress, in front of
// an emulated runner with users of its own.
func startBusyDaemon(t *testing.T) *app.App {
	t.Helper()
	c := emulator.DefaultConfig()
	c.Profile, c.Models, c.Speedup = "llama-7b-h100", []string{"m"}, 2
	c.Interactive.RPS = 4
	cfg := apptest.Config(t.TempDir(), apptest.StartEngine(t, c))
	// So that metrics of streams and of shadows have data.
	defaults, err := config.Load("", config.Setting{Path: "flowcontrol.headroom.streams",
		Value: "some"}, config.Setting{Path: "flowcontrol.shadow.policy", Value: "aimd"})
	if err != nil {
		t.Fatal(err)
	}
	cfg.FlowControl = defaults.FlowControl
	// With an objective the policy watches a new pool for 20 s, without one for a minute.
	cfg.FlowControl.SLO.TTFT, cfg.FlowControl.SLO.TPOT = time.Second, 10*time.Millisecond
	// So that the metrics of scaling have data.
	cfg.Scaler.Listen = "127.0.0.1:0"
	cfg.Pools = []config.PoolConfig{{Pool: registry.Pool{Name: "pool",
		Models: []string{"m"}, Max: 1}}}
	cfg.Upstreams[0].Pool = "pool"
	daemon, _ := apptest.Start(t, cfg, app.Options{})

	to, batch := apptest.Submit(t, daemon, 20_000)
	watching, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { // a user who asks how it gets on, so that the API is busy too
		defer close(ended)
		to.Watch(watching, batch.ID, func(client.Batch) {})
	}()
	t.Cleanup(func() {
		end()
		<-ended
	})
	return daemon
}

// startPrometheus runs a Prometheus with our rules that scrapes a target each second, until the
// test ends.
func startPrometheus(t *testing.T, target string) (address string) {
	t.Helper()
	rules, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("rule_files: [%q]\nscrape_configs: [{job_name: tidefill, scrape_interval: "+
		"1s, static_configs: [{targets: [%q]}]}]\n", rules, target)
	address, _ = prometheus.Start(t, text)
	awaitData(t, address, "up == 1", time.Now().Add(30*time.Second))
	return address
}

// awaitData waits until a query has a result with a number.
func awaitData(t *testing.T, prometheus, expression string, deadline time.Time) {
	t.Helper()
	for {
		numbers, err := query(prometheus, expression)
		if slices.ContainsFunc(numbers, func(n string) bool { return n != "NaN" }) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("no data for %s: %q, %v", expression, numbers, err)
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// query returns the values of the result of an instant query.
func query(prometheus, expression string) (values []string, err error) {
	response, err := http.Get(prometheus + "/api/v1/query?query=" + url.QueryEscape(expression))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("%s: %s", expression, answer.Error)
	}
	for _, r := range answer.Data.Result {
		values = append(values, fmt.Sprint(r.Value[1]))
	}
	return values, nil
}

func get(t *testing.T, from string) []byte {
	t.Helper()
	response, err := http.Get(from)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return page
}
