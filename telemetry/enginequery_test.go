package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Prometheus knows which engines are behind a gateway. Each is a runner of its own.
func TestEnginesAreFoundInPrometheus(t *testing.T) {
	series := func(instance, value string) string {
		return `{"metric":{"__name__":"vllm:num_requests_running","instance":"` + instance +
			`"},"value":[1700000100.5,"` + value + `"]}`
	}
	url := fakePrometheus(t,
		[2]string{"timestamp(", `[{"metric":{"instance":"10.0.0.1:8000"},"value":[1,"1700000090"]},` +
			`{"metric":{"instance":"10.0.0.2:8000"},"value":[1,"1700000095"]}]`},
		[2]string{`instance=~"10[.]0[.]0[.].*"`, `[{"metric":{"instance":"10.0.0.1:8000"},` +
			`"value":[1,"1"]},{"metric":{"instance":"10.0.0.2:8000"},"value":[1,"1"]}]`},
		[2]string{`instance=~"10\\.0\\.0\\.1:8000|10\\.0\\.0\\.2:8000"`, "[" + series("10.0.0.1:8000", "3") + "," +
			series("10.0.0.2:8000", "4") + "]"})
	cfg := quick()
	cfg.Prometheus.URL, cfg.Prometheus.TTFT, cfg.Prometheus.TPOT = url, nil, nil
	cfg.Prometheus.Runners = PrometheusRunners{Label: "instance"}
	seen := newCollector()
	names := func() (names []string) {
		for _, s := range seen.of(flowcontrol.Metrics) {
			if s.Reading.Running != map[string]float64{"gw/10.0.0.1:8000": 3,
				"gw/10.0.0.2:8000": 4}[s.Runner] {
				t.Errorf("got %v of %s", s.Reading.Running, s.Runner)
			}
			names = append(names, s.Runner)
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	seen.run(t, cfg, func() bool {
		return len(names()) == 2 && strings.Contains(seen.logged(), "upstreams[].engines")
	}, Runner{Name: "gw", Engines: "10[.]0[.]0[.].*"}, Runner{Name: "other", Engines: "none"})
}

// added are the labels of a series that no signal needs, as in a cluster of Kubernetes.
const added = `,"container":"vllm","endpoint":"http","engine":"0","instance":"10.128.14.201:8000",` +
	`"job":"inference/llama-3-70b","model_name":"meta-llama/Llama-3.3-70B-Instruct",` +
	`"namespace":"inference","node":"gke-a3-high-pool-1-0b8f2c61-x7kq",` +
	`"prometheus":"monitoring/kube-prometheus-stack","service":"llama-3-70b-decode"`

// manyEngines is a Prometheus with engines whose series have the labels that Kubernetes adds.
func manyEngines(engines, series int) http.Handler {
	matching := regexp.MustCompile(`pod=~"((?:[^"\\]|\\.)*)"`)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.FormValue("query")
		pods := regexp.MustCompile("^(?:" + strings.ReplaceAll(
			matching.FindStringSubmatch(query)[1], `\\`, `\`) + ")$")
		io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[`)
		separator := ""
		for i := range engines {
			pod := fmt.Sprintf("llama-3-70b-decode-6f8b9c7d5-%05d", i)
			if !pods.MatchString(pod) {
				continue
			}
			if strings.Contains(query, " by (pod") {
				fmt.Fprintf(w, `%s{"metric":{"pod":%q%s},"value":[1700000100,"1700000090"]}`,
					separator, pod, added)
				separator = ","
				continue
			}
			for n := range series {
				name := "vllm:num_requests_running"
				if n > 0 {
					name = "vllm:time_to_first_token_seconds_bucket"
				}
				io.WriteString(w, separator+`{"metric":{"__name__":"`+name+`","le":"`+
					strconv.Itoa(n)+`","pod":"`+pod+`"`+added+`},"value":[1700000100.123,"7"]}`)
				separator = ","
			}
		}
		io.WriteString(w, "]}}")
	})
}

// Each answer is below the limit, however many engines there are and however much each shows.
func TestManyEnginesAreReadInGroups(t *testing.T) {
	for _, test := range []struct{ engines, series int }{{200, 118}, {2, 6000}} {
		server := httptest.NewServer(manyEngines(test.engines, test.series))
		defer server.Close()
		cfg := quick()
		cfg.Prometheus.URL, cfg.Prometheus.TTFT, cfg.Prometheus.TPOT = server.URL, nil, nil
		cfg.Prometheus.Runners = PrometheusRunners{Label: "pod"}
		seen := newCollector()
		seen.run(t, cfg, func() bool { return len(seen.of(flowcontrol.Metrics)) >= test.engines },
			Runner{Name: "gw", Engines: "llama-3-70b-.*"})
		names := map[string]bool{}
		for _, s := range seen.of(flowcontrol.Metrics)[:test.engines] {
			names[s.Runner] = true
		}
		if len(names) != test.engines || strings.Contains(seen.logged(), "too_large") {
			t.Errorf("%d of %d engines are read; log:\n%s", len(names), test.engines, seen.logged())
		}
	}
}

// An answer that is too large once, as of an engine with very many series, does not leave small
// queries for ever.
func TestGroupsGrowAgain(t *testing.T) {
	engines, several := manyEngines(4, 1), regexp.MustCompile(`pod=~".*-[0-9]+\|`)
	queries, large := 0, false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queries++
		if large && several.MatchString(r.FormValue("query")) {
			io.WriteString(w, `{"status":"`+strings.Repeat("x", largestReply))
			return
		}
		engines.ServeHTTP(w, r)
	}))
	defer server.Close()
	cfg := DefaultConfig()
	cfg.Prometheus.URL, cfg.Prometheus.Runners.Label = server.URL, "pod"
	r, err := New(cfg, Deps{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := r.enginesOfPrometheus(newPromQuery(cfg.Prometheus, r.access, r.log, nil),
		Runner{Name: "gw", Engines: "llama-3-70b-.*"})
	read := func(isLarge bool) int {
		t.Helper()
		queries, large = 0, isLarge
		if samples, err := s.read(t.Context()); err != nil || len(samples) != 4 {
			t.Fatalf("got %d samples, %v; want 4", len(samples), err)
		}
		return queries
	}
	const one, each = 1 + 2, 1 + 2*4 // the list, and two for a group
	if n := read(false); n != one {
		t.Fatalf("%d queries, want %d", n, one)
	}
	if n := read(true); n != each+2 {
		t.Fatalf("%d queries, want two with too large answers, and %d", n, each)
	}
	for i := range 2*growAfter + 1 {
		if n := read(false); i < growAfter && n != each || i == 2*growAfter && n != one {
			t.Fatalf("read %d: %d queries", i, n)
		}
	}
}
