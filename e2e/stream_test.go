package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers/prometheus"
)

// A streamed line has the same output as one that is not streamed.
func TestStreamedLinesHaveTheSameOutput(t *testing.T) {
	t.Parallel()
	bodies := map[string]func(i int) string{
		"/v1/chat/completions": func(i int) string {
			return fmt.Sprintf(
				`{"model":"m","n":%d,"max_tokens":40,"messages":[{"role":"user","content":"say %d é"}]}`, 1+i%2, i)
		},
		"/v1/completions": func(i int) string {
			return fmt.Sprintf(`{"model":"m","prompt":["%d"],"max_tokens":30,"stream":false}`, i)
		},
		"/v1/responses": func(i int) string {
			return fmt.Sprintf(`{"model":"m","input":"say %d","max_output_tokens":30}`, i)
		},
		"/v1/embeddings": func(i int) string {
			return fmt.Sprintf(`{"model":"m","input":"%d"}`, i)
		},
	}
	runner := startRunner(t, freeAddress(t), "--profile", "llama-7b-h100", "--model", "m",
		"--speedup", "10")
	outputs := map[string]map[string]any{}
	for _, policy := range []string{"fixed", "headroom"} {
		admin := freeAddress(t)
		d := NewDaemon(t, Options{Upstreams: []string{runner},
			Set: []string{"flowcontrol.policy=" + policy, "flowcontrol.headroom.streams=all",
				// The machine's own pauses break no objective.
				"flowcontrol.slo.ttft=1m", "flowcontrol.slo.tpot=5s"},
			Args: []string{"--admin-listen", admin}})
		c := d.Client()
		ids := map[string]string{}
		for url, body := range bodies {
			var lines strings.Builder
			for i := range 30 {
				fmt.Fprintf(&lines, `{"custom_id":"%s %d","method":"POST","url":%q,"body":%s}`+"\n",
					url, i, url, body(i))
			}
			file, err := c.Upload([]byte(lines.String()))
			if err != nil {
				t.Fatal(err)
			}
			var b Batch
			create := fmt.Sprintf(`{"input_file_id":%q,"endpoint":%q,"completion_window":"24h"}`,
				file.ID, url)
			if err := c.json("POST", "/v1/batches", "application/json", strings.NewReader(create),
				&b); err != nil {
				t.Fatal(err)
			}
			ids[url] = b.ID
		}
		outputs[policy] = map[string]any{}
		for _, id := range ids {
			output, failed := c.Results(t, c.AwaitEnd(t, id, time.Minute))
			for _, r := range failed {
				t.Errorf("policy %s: %s failed: %+v %+v", policy, r.CustomID, r.Error, r.Response)
			}
			for _, r := range output {
				outputs[policy][r.CustomID] = stripped(t, r.Response.Body)
			}
			d.Verify(t, id)
		}
		streamed := strings.Contains(metricsOf(t, admin),
			`tidefill_streams_total{result="streamed"`)
		if streamed != (policy == "headroom") {
			t.Errorf("policy %s: answers were streamed: %v", policy, streamed)
		}
	}
	if len(outputs["headroom"]) != 120 {
		t.Errorf("there are %d answers, want 120", len(outputs["headroom"]))
	}
	for id, fixed := range outputs["fixed"] {
		if streamed := outputs["headroom"][id]; !reflect.DeepEqual(fixed, streamed) {
			t.Errorf("%s: streamed\n%v\nunstreamed\n%v", id, streamed, fixed)
		}
	}
}

// stripped returns an answer without the fields that differ between two attempts.
func stripped(t testing.TB, body []byte) any {
	t.Helper()
	unique := regexp.MustCompile(`"(id|item_id)":"[^"]*"|"created(_at)?":\d+|"cached_tokens":\d+`)
	var v any
	if err := json.Unmarshal(unique.ReplaceAll(body, []byte(`"$1":0`)), &v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return v
}

// A daemon with a policy that uses readings gets them from its runners and from a real Prometheus,
// and continues without either.
func TestReadingsFromRunnersAndPrometheus(t *testing.T) {
	long(t, "it watches a new pool for a minute")
	t.Parallel()
	runner := startRunner(t, freeAddress(t), "--profile", "llama-7b-h100", "--model", "m",
		"--interactive-rps", "5")
	prometheus, stop := startPrometheus(t, runner)
	admin := freeAddress(t)
	d := NewDaemon(t, Options{Upstreams: []string{runner}, Set: []string{
		"flowcontrol.policy=headroom", "telemetry.prometheus.url=" + prometheus,
		"telemetry.prometheus.tuning.every=500ms",
		"telemetry.prometheus.ttft=[emulator_interactive_time_to_first_token_seconds]",
		"telemetry.prometheus.tpot=[emulator_interactive_time_per_output_token_seconds]",
	}, Args: []string{"--admin-listen", admin}})
	target := strings.TrimPrefix(runner, "http://")
	for _, s := range []struct {
		target, source string
		age            time.Duration // at most, on a busy machine
	}{{target, "metrics", 3 * time.Second}, {target, "capabilities", 8 * time.Second},
		{"m", "gateway", 5 * time.Second}} {
		await(t, 30*time.Second, "a fresh reading of "+s.source, func() bool {
			at := gauge(t, admin, fmt.Sprintf(
				`tidefill_reading_timestamp_seconds{source=%q,target=%q}`,
				s.source, s.target))
			return time.Since(time.UnixMilli(int64(at*1000))) < s.age
		})
	}
	if page := metricsOf(t, admin); !strings.Contains(page,
		`tidefill_signal_resolved{metric="vllm:kv_cache_usage_perc",runner="`+target+`",signal="kv_used"} 1`) {
		t.Errorf("the signals are not shown:\n%s", page)
	}
	if log := d.Log(); !strings.Contains(log, "engine=vllm running=vllm:num_requests_running") ||
		!strings.Contains(log, "reading interactive latencies") {
		t.Errorf("the resolved signals are not logged:\n%s", log)
	}
	stop()
	await(t, 20*time.Second, "a failed query of Prometheus", func() bool {
		return gauge(
			t, admin, `tidefill_reading_failures_total{source="gateway",target="prometheus"}`) > 0
	})
	c := d.Client()
	b := c.Submit(
		t, []byte(
			`{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}]}}`), "")
	// A new pool is watched for a minute at most, whether or not its gateway falls silent.
	if ended := c.AwaitEnd(t, b.ID, 90*time.Second); ended.RequestCounts.Completed != 1 {
		t.Errorf("got %+v", ended)
	}
}

// startPrometheus runs a Prometheus that scrapes a runner every second, until the test ends or stop
// is called.
func startPrometheus(t testing.TB, runner string) (url string, stop func()) {
	t.Helper()
	url, stop = prometheus.Start(t, fmt.Sprintf("scrape_configs: [{job_name: runner, "+
		"scrape_interval: 1s, static_configs: [{targets: [%q]}]}]\n",
		strings.TrimPrefix(runner, "http://")))
	await(t, 20*time.Second, "that Prometheus is ready", func() bool {
		response, err := http.Get(url + "/-/ready")
		if err == nil {
			response.Body.Close()
		}
		return err == nil && response.StatusCode == http.StatusOK
	})
	return url, stop
}

// await polls until a condition holds.
func await(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(
		50 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not so after %v: %s", limit, what)
}

// metricsOf returns the daemon's metrics page.
func metricsOf(t testing.TB, admin string) string {
	t.Helper()
	response, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// gauge returns the value of a series of the page; 0: it does not exist.
func gauge(t testing.TB, admin, series string) float64 {
	t.Helper()
	for line := range strings.Lines(metricsOf(t, admin)) {
		if text, found := strings.CutPrefix(line, series+" "); found {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	return 0
}
