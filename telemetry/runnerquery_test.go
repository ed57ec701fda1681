package telemetry

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/flowcontrol"
)

func TestRunnersAreReadFromPrometheus(t *testing.T) {
	at := func(name, instance, labels, value string) string {
		return fmt.Sprintf(`{"metric":{"__name__":%q,"instance":%q%s},"value":[1700000100.5,%q]}`,
			name, instance, labels, value)
	}
	var queries []string
	inner := fakePrometheus(t,
		[2]string{"timestamp(", `[{"metric":{"instance":"10.0.0.1:8000"},"value":[1,"1700000090.25"]},` +
			`{"metric":{"instance":"b:1"},"value":[1,"1700000095"]}]`},
		[2]string{`{__name__=~"`, "[" + strings.Join([]string{
			at("vllm:num_requests_running", "10.0.0.1:8000", `,"engine":"0"`, "3"),
			at("vllm:num_requests_running", "10.0.0.1:8000", `,"engine":"1"`, "4"),
			at("vllm:num_requests_waiting", "10.0.0.1:8000", "", "NaN"),
			at("vllm:inter_token_latency_seconds_bucket", "10.0.0.1:8000", `,"le":"+Inf"`, "9"),
			at("sglang:num_running_reqs", "b:1", "", "2"),
		}, ",") + "]"})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.FormValue("time")+" "+r.FormValue("query"))
		response, err := http.PostForm(inner+r.URL.Path, r.Form)
		if err != nil {
			t.Error(err)
			return
		}
		defer response.Body.Close()
		io.Copy(w, response.Body)
	}))
	defer server.Close()
	cfg := quick()
	cfg.Prometheus.URL, cfg.Prometheus.TTFT, cfg.Prometheus.TPOT = server.URL, nil, nil
	cfg.Prometheus.Runners = PrometheusRunners{Label: "instance",
		Values: map[string]string{"a": "10.0.0.1:8000"}}
	seen := newCollector()
	seen.run(t, cfg, func() bool { return len(seen.of(flowcontrol.Metrics)) >= 2 },
		Runner{Name: "a", Base: "http://127.0.0.1:1"}, Runner{Name: "b:1", Base: "http://b:1"},
		Runner{Name: "gone:1", Base: "http://gone:1"})
	want := map[string]flowcontrol.Reading{
		"a": reading(flowcontrol.Metrics, func(r *flowcontrol.Reading) {
			r.Running, r.GapTimes = 7, []flowcontrol.Bucket{{Upper: math.Inf(1), Count: 9}}
		}),
		"b:1": reading(flowcontrol.Metrics, func(r *flowcontrol.Reading) { r.Running = 2 }),
	}
	for _, s := range seen.of(flowcontrol.Metrics)[:2] {
		if diff := cmp.Diff(want[s.Runner], *s.Reading, equalReadings); diff != "" {
			t.Errorf("%s: %s", s.Runner, diff)
		}
		if s.Runner == "a" && !s.Reading.Sampled.Equal(time.UnixMilli(1700000090250)) {
			t.Errorf("sampled %v, want the time of the scrape", s.Reading.Sampled)
		}
	}
	if !strings.Contains(queries[0], `instance=~"10\\.0\\.0\\.1:8000|b:1|gone:1"`) ||
		!strings.HasPrefix(queries[1], "1700000100.5 min by (instance, pod, job, prometheus, "+
			"prometheus_replica) (timestamp(sglang:") {
		t.Errorf("queries:\n%s", strings.Join(queries[:2], "\n"))
	}
	if log := seen.logged(); !strings.Contains(log, "state=no_data") ||
		!strings.Contains(log, "gone:1") {
		t.Errorf("the runner that Prometheus does not have is not logged:\n%s", log)
	}
}
