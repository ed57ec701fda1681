package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/flowcontrol"
)

var equalReadings = cmp.Options{cmpopts.EquateNaNs(), cmpopts.IgnoreFields(flowcontrol.Reading{},
	"Sampled")}

// reading returns a reading with only the values that change sets.
func reading(source flowcontrol.Source, change func(*flowcontrol.Reading)) flowcontrol.Reading {
	r := flowcontrol.NoReading(source, time.Time{})
	change(&r)
	return r
}

// buckets returns a histogram of pairs of an edge and a count.
func buckets(pairs ...float64) (h []flowcontrol.Bucket) {
	for i := 0; i < len(pairs); i += 2 {
		h = append(h, flowcontrol.Bucket{Upper: pairs[i], Count: pairs[i+1]})
	}
	return h
}

func builtIn(t testing.TB) signalMap {
	t.Helper()
	m, err := loadSignals("")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestSignalsAreReadByTheNamesOfEachEngine(t *testing.T) {
	for name, c := range map[string]struct {
		page   string
		engine string
		want   func(*flowcontrol.Reading)
	}{
		"vllm": {`
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:num_requests_waiting{engine="0",model_name="m"} 9
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 2
vllm:num_requests_waiting_by_reason{engine="0",reason="deferred"} 7
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.75
vllm:gpu_cache_usage_perc{engine="0"} 0.9
vllm:cache_config_info{block_size="16",num_gpu_blocks="1000",engine="0"} 1
vllm:cache_config_info{block_size="16",num_gpu_blocks="500",engine="1"} 1
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0"} 1.5e6
vllm:prefix_cache_hits_total{engine="0"} 7
vllm:generation_tokens_total{engine="0"} 11
vllm:num_preemptions_total{engine="0"} 0
vllm:request_success_total{engine="0",finished_reason="stop"} 30
vllm:request_success_total{engine="0",finished_reason="length"} 4
vllm:request_success_total{engine="1",finished_reason="stop"} 6
vllm:time_to_first_token_seconds_bucket{le="+Inf"} 5
# TYPE vllm:inter_token_latency_seconds histogram
vllm:inter_token_latency_seconds_bucket{engine="0",le="0.1"} 15
vllm:inter_token_latency_seconds_bucket{engine="0",le="0.05"} 10
vllm:inter_token_latency_seconds_bucket{engine="0",le="+Inf"} 20
vllm:inter_token_latency_seconds_sum{engine="0"} 0.75
vllm:inter_token_latency_seconds_count{engine="0"} 20
vllm:inter_token_latency_seconds_bucket{engine="1",le="0.05"} 1
vllm:inter_token_latency_seconds_bucket{engine="1",le="0.1"} 1
vllm:inter_token_latency_seconds_bucket{engine="1",le="+Inf"} 1
vllm:inter_token_latency_seconds_sum{engine="1"} 0.25
vllm:inter_token_latency_seconds_count{engine="1"} 1
vllm:time_per_output_token_seconds_sum 99
vllm:time_per_output_token_seconds_count 99
# TYPE vllm:request_prompt_tokens histogram
vllm:request_prompt_tokens_bucket{engine="0",le="1.0"} 0
vllm:request_prompt_tokens_bucket{engine="0",le="+Inf"} 4
vllm:request_prompt_tokens_sum{engine="0"} 400
vllm:request_prompt_tokens_count{engine="0"} 4
# TYPE vllm:request_generation_tokens histogram
vllm:request_generation_tokens_bucket{engine="0",le="50.0"} 3
vllm:request_generation_tokens_bucket{engine="0",le="+Inf"} 4
`, "vllm", func(r *flowcontrol.Reading) {
			r.TokenGaps, r.TokenGapTime = 21, 1
			r.FirstTokenTimes = buckets(math.Inf(1), 5)
			r.GapTimes = buckets(0.05, 11, 0.1, 16, math.Inf(1), 21)
			r.PromptLengths = buckets(1, 0, math.Inf(1), 4)
			r.AnswerLengths = buckets(50, 3, math.Inf(1), 4)
			r.Running, r.Waiting, r.KVUsed, r.KVTokens = 7, 2, 0.5, 24_000
			r.PromptTokens, r.CachedTokens, r.OutputTokens, r.Preemptions = 1.5e6, 7, 11, 0
			r.Requests = 40
		}},
		"vllm under ray, an older one": {`
ray_vllm_num_requests_running{} 3
ray_vllm_num_requests_waiting 1
ray_vllm_gpu_cache_usage_perc 0.9
ray_vllm_cache_config_info{block_size="16",num_gpu_blocks="None"} 1
ray_vllm_generation_tokens_total NaN
ray_vllm_time_per_output_token_seconds_bucket{le="+Inf"} 3
ray_vllm_time_per_output_token_seconds_sum 0.3
ray_vllm_time_per_output_token_seconds_count 3
`, "vllm", func(r *flowcontrol.Reading) {
			r.Running, r.Waiting, r.KVUsed = 3, 1, 0.9
			r.TokenGaps, r.TokenGapTime, r.GapTimes = 3, 0.3, buckets(math.Inf(1), 3)
		}},
		"sglang": {`
sglang:num_running_reqs 5
sglang:num_queue_reqs 6
sglang:token_usage 0.4
sglang:max_total_num_tokens 70000
sglang:num_requests_total 12
sglang:cached_tokens_total 1
sglang:prompt_tokens_total 2
sglang:generation_tokens_total 3
sglang:realtime_tokens_total{mode="decode"} 4
sglang:realtime_tokens_total{mode="prefill_compute"} 9
sglang:realtime_tokens_total{mode="prefill_cache"} 3
sglang:inter_token_latency_seconds_bucket{le="+Inf"} 50
sglang:inter_token_latency_seconds_sum 2
sglang:inter_token_latency_seconds_count 50
sglang:prompt_tokens_histogram_bucket{le="100.0"} 7
sglang:prompt_tokens_histogram_bucket{le="+Inf"} 8
sglang:generation_tokens_histogram_bucket{le="+Inf"} 8
`, "sglang", func(r *flowcontrol.Reading) {
			r.TokenGaps, r.TokenGapTime = 50, 2
			r.PromptLengths = buckets(100, 7, math.Inf(1), 8)
			r.AnswerLengths = buckets(math.Inf(1), 8)
			r.Running, r.Waiting, r.KVUsed, r.KVTokens = 5, 6, 0.4, 70_000
			r.Requests, r.CachedTokens, r.PromptTokens, r.OutputTokens = 12, 3, 12, 4
		}},
		"sglang with priorities": {`
sglang:num_running_reqs{model_name="m",priority=""} 5
sglang:num_running_reqs{model_name="m",priority="0"} 3
sglang:num_running_reqs{model_name="m",priority="7"} 2
sglang:num_queue_reqs{model_name="m",priority=""} 6
sglang:num_queue_reqs{model_name="m",priority="0"} 6
sglang:num_retracted_requests_total{model_name="m",priority=""} 8
sglang:cached_tokens_total{model_name="m"} 1
sglang:prompt_tokens_total{model_name="m"} 2
sglang:generation_tokens_total{model_name="m"} 3
`, "sglang", func(r *flowcontrol.Reading) {
			r.Running, r.Waiting, r.Preemptions = 5, 6, 8
			r.CachedTokens, r.PromptTokens, r.OutputTokens = 1, 2, 3
		}},
		"sglang under ray": {`
ray_sglang_num_running_reqs 5
ray_sglang_token_usage 0.5
ray_sglang_inter_token_latency_seconds_sum 100
ray_sglang_inter_token_latency_seconds_count 50
`, "sglang-ray", func(r *flowcontrol.Reading) { r.Running, r.KVUsed = 5, 0.5 }},
		"tensorrt-llm": {`
trtllm_num_requests_running 5
trtllm_num_requests_waiting 0
trtllm_kv_cache_utilization 0.5
trtllm_kv_cache_max_blocks 100
trtllm_kv_cache_tokens_per_block 64
trtllm_request_success_total{finished_reason="stop"} 8
trtllm_prompt_tokens_total 100
trtllm_prompt_cached_tokens_total 40
trtllm_prompt_cache_hit_tokens_total{cache_level="0",cache_tier="gpu"} 41
trtllm_prompt_cached_tokens_per_request_sum 42
trtllm_time_per_output_token_seconds_sum 3
trtllm_time_per_output_token_seconds_count 4
`, "tensorrt-llm", func(r *flowcontrol.Reading) {
			r.Running, r.Waiting, r.KVUsed, r.KVTokens = 5, 0, 0.5, 6400
			r.Requests, r.PromptTokens, r.CachedTokens = 8, 100, 40
		}},
		"triton": {`
nv_trt_llm_request_metrics{model="m",request_type="scheduled",version="1"} 2
nv_trt_llm_request_metrics{model="m",request_type="waiting",version="1"} 3
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction"} 0.1
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max"} 10
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per"} 32
`, "triton-tensorrt-llm", func(r *flowcontrol.Reading) { r.Running, r.Waiting, r.KVUsed, r.KVTokens = 2, 3, 0.1, 320 }},
		"tgi": {`
# TYPE tgi_batch_current_size gauge
tgi_batch_current_size 2
# TYPE tgi_queue_size gauge
tgi_queue_size 1
tgi_request_count 5
tgi_request_success 3
# TYPE tgi_request_generated_tokens histogram
tgi_request_generated_tokens_bucket{le="10"} 1
tgi_request_generated_tokens_bucket{le="+Inf"} 2
tgi_request_generated_tokens_sum 44
tgi_request_generated_tokens_count 2
tgi_request_input_length_bucket{le="+Inf"} 2
`, "tgi", func(r *flowcontrol.Reading) {
			r.Running, r.Waiting, r.Requests, r.OutputTokens = 2, 1, 3, 44
			r.AnswerLengths = buckets(10, 1, math.Inf(1), 2)
			r.PromptLengths = buckets(math.Inf(1), 2)
		}},
		"something else": {"go_goroutines 7\nvllm:num_requests_waiting 3\n",
			"", func(*flowcontrol.Reading) {}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := parsePage(strings.NewReader(c.page), builtIn(t).metrics())
			if err != nil {
				t.Fatal(err)
			}
			got, found := builtIn(t).read(p, time.Unix(9, 0))
			if diff := cmp.Diff(reading(flowcontrol.Metrics, c.want), got,
				equalReadings); diff != "" || found.engine != c.engine {
				t.Errorf("engine %q, want %q; reading (-want +got): %s", found.engine, c.engine,
					diff)
			}
			if !got.Sampled.Equal(time.Unix(9, 0)) {
				t.Errorf("sampled %v, want the time of the read", got.Sampled)
			}
		})
	}
}

func TestHistogramsOfAnEngineAreSummed(t *testing.T) {
	text := "vllm:num_requests_running 1\n"
	for rank, add := range []int{0, 5} {
		text += fmt.Sprintf(
			"vllm:inter_token_latency_seconds_bucket{engine=\"%d\",le=\"+Inf\"} %d\n", rank, 3+add)
		text += fmt.Sprintf(
			"vllm:inter_token_latency_seconds_bucket{engine=\"%d\",le=\"0.5\"} %d\n", rank, 1+add)
	}
	p, err := parsePage(strings.NewReader(text), builtIn(t).metrics())
	if err != nil {
		t.Fatal(err)
	}
	m := builtIn(t)
	_, found := m.read(p, time.Unix(1, 0))
	ttft, tpot := m.latencies(p, found)
	want := []flowcontrol.Bucket{{Upper: 0.5, Count: 7}, {Upper: math.Inf(1), Count: 11}}
	if diff := cmp.Diff(want, tpot); diff != "" || ttft != nil {
		t.Errorf("ttft %v, tpot %s", ttft, diff)
	}
}

func TestTimestampsOfThePageAreUsed(t *testing.T) {
	p, err := parsePage(strings.NewReader("vllm:num_requests_running 3 5000\n"+
		"vllm:num_requests_waiting 1 4000\nvllm:prompt_tokens_total 1 90000\n"),
		builtIn(t).metrics())
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := builtIn(t).read(p, time.Unix(60, 0)); !r.Sampled.Equal(time.Unix(4, 0)) {
		t.Errorf("sampled %v, want 4 s", r.Sampled)
	}
}

func TestParseSignalsRefusesFaults(t *testing.T) {
	const x = "- engine: x\n  prefixes: [x_]\n  signals: "
	for text, want := range map[string]string{
		"":                                         "1: it lists no engine",
		x + "{runing: [a]}":                        `1: engine "x": engine, prefixes`,
		x + "{running: [a], wating: [b]}":          `3: engine x: "wating" is not a signal`,
		x + "{running: ['a{b}']}":                  "3: engine x, signal running: ",
		x + "{running: ['a{b=\"1\"']}":             "no closing brace",
		x + "{running: ['a{b=~\"(\"}']}":           "missing closing",
		x + "{running: ['1a']}":                    "does not begin with the name of a metric",
		x + "{running: [{metric: a, label: [b]}]}": `3: "label" is not one of metric`,
		"- engine: x\n  prefixes: [x_]\n  signal: {running: [a]}": `3: "signal" is not one of`,
		x + "{running: [a]":     "3: did not find expected ',' or '}'",
		x + "{running: {b: c}}": "3: cannot unmarshal",
		x + "{running: [a], kv_tokens: [{metric: a, times: 7}]}": "does not begin with",
		x + "&a {running: [a], <<: *a}":                          "contains itself",
		x + "&a {running: [a], <<: [*a, *a]}":                    "contains itself",
		x + "&a {running: ['1a']}\n- engine: y\n  prefixes: [y_]\n  signals: {<<: [*a]}": "3: " +
			"engine x, signal running: ",
	} {
		if _, err := parseSignals([]byte(text)); err == nil || !strings.Contains(err.Error(),
			want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// collector collects the samples and the log of a Reader.
type collector struct {
	changed chan struct{} // receives after a sample or a log record, if nothing is pending

	mu      sync.Mutex
	samples []Sample
	log     strings.Builder
}

func newCollector() *collector { return &collector{changed: make(chan struct{}, 1)} }

func (c *collector) notify() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

func (c *collector) add(s Sample) {
	defer c.notify()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples = append(c.samples, s)
}

func (c *collector) Write(p []byte) (int, error) {
	defer c.notify()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.Write(p)
}

func (c *collector) logged() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.String()
}

// of returns the samples of a kind of source.
func (c *collector) of(source flowcontrol.Source) (of []Sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.samples {
		if s.Reading.Source == source {
			of = append(of, s)
		}
	}
	return of
}

// run runs a Reader until enough returns true, which it checks after each sample and log record.
func (c *collector) run(t *testing.T, cfg Config, enough func() bool, runners ...Runner) {
	t.Helper()
	r, err := New(cfg, Deps{
		Runners: runners, OnSample: c.add,
		Logger: slog.New(slog.NewTextHandler(c, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	for !enough() && ctx.Err() == nil {
		select {
		case <-c.changed:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		t.Errorf("the samples were never enough; log:\n%s", c.logged())
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// quick returns a configuration with short intervals.
func quick() Config {
	cfg := DefaultConfig()
	cfg.Every, cfg.CapabilitiesEvery, cfg.Prometheus.Every = 5*time.Millisecond, 5*time.Millisecond,
		5*time.Millisecond
	return cfg
}

func TestReaderFollowsARunnerThatChanges(t *testing.T) {
	var page atomic.Pointer[string]
	set := func(s string) { page.Store(&s) }
	set("vllm:num_requests_running 1\n")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer k" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		io.WriteString(w, *page.Load())
	})
	mux.HandleFunc("GET /v1/capabilities", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Age", "3")
		io.WriteString(w, `{"queue":{"depth":4},"resources":{"gpuUtilization":0.5}}`)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	seen := newCollector()
	began := time.Now()
	stage := 0
	seen.run(t, quick(), func() bool {
		metrics := seen.of(flowcontrol.Metrics)
		if len(metrics) == 0 || len(seen.of(flowcontrol.Capabilities)) == 0 {
			return false
		}
		running := metrics[len(metrics)-1].Reading.Running
		switch {
		case stage == 0 && running == 1:
			set("vllm:num_requests_running 2\nvllm:num_requests_waiting 0\n")
			stage++
		case stage == 1 && running == 2:
			set("oops {\n")
			stage++
		case stage == 2 && strings.Contains(seen.logged(), "telemetry source failed"):
			set("sglang:num_running_reqs 3\n")
			stage++
		}
		return stage == 3 && running == 3
	}, Runner{Name: "r", Base: server.URL, Metrics: server.URL + "/metrics", Header: http.Header{
		"Authorization": {"Bearer k"}}})
	for _, line := range []string{
		`level=INFO msg="reading a runner's metrics" component=telemetry runner=r engine=vllm ` +
			`missing="[waiting kv_used`,
		`level=INFO msg="reading a runner's metrics" component=telemetry runner=r engine=vllm ` +
			`missing="[kv_used`,
		"engine=vllm running=vllm:num_requests_running waiting=vllm:num_requests_waiting\n",
		"telemetry source recovered",
		`engine=sglang running="sglang:num_running_reqs{priority=\"\"}"`,
	} {
		if n := strings.Count(seen.logged(), line); n != 1 {
			t.Errorf("%q is logged %d times, want once:\n%s", line, n, seen.logged())
		}
	}
	for _, l := range seen.of(flowcontrol.Metrics) {
		if l.Runner != "r" || l.Reading.Sampled.Before(began) ||
			l.Reading.Sampled.After(time.Now()) {
			t.Errorf("got %+v, want a sample of r, taken during the test", l)
		}
	}
	want := reading(flowcontrol.Capabilities, func(r *flowcontrol.Reading) { r.Waiting = 4 })
	got := seen.of(flowcontrol.Capabilities)[0].Reading
	if diff := cmp.Diff(want, *got, equalReadings); diff != "" {
		t.Error(diff)
	}
	if age := began.Sub(got.Sampled); age < time.Second || age > 3*time.Second {
		t.Errorf("capabilities are from %v before the read, want 3 s", age)
	}
}

func TestAPIKeyIsNotSentToAnotherServer(t *testing.T) {
	var keys atomic.Int64
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			keys.Add(1)
		}
		io.WriteString(w, "vllm:num_requests_running 1\n")
	}))
	defer exporter.Close()
	seen := newCollector()
	seen.run(t, quick(), func() bool { return len(seen.of(flowcontrol.Metrics)) > 0 },
		Runner{Name: "r", Base: "http://127.0.0.1:1", Metrics: exporter.URL + "/metrics",
			Header: http.Header{"Authorization": {"Bearer k"}}})
	if keys.Load() > 0 {
		t.Error("an exporter got the runner's API key")
	}
}

func TestASourceThatFailsIsReadLessOften(t *testing.T) {
	for name, c := range map[string]struct {
		err         error
		most, least int // reads in ten minutes
	}{
		"no error":  {nil, 660, 540},
		"failing":   {io.ErrUnexpectedEOF, 140, 110},
		"not there": {errUnknownPage, 12, 9},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := newCollector()
				r, err := New(DefaultConfig(), Deps{
					Logger: slog.New(slog.NewTextHandler(seen, nil)), OnSample: func(Sample) {}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
				defer stop()
				reads := 0
				s := source{target: "r", kind: "metrics", every: time.Second, timeout: time.Second}
				s.read = func(context.Context) ([]Sample, error) {
					reads++
					return nil, c.err
				}
				r.poll(ctx, s)
				if reads < c.least || reads > c.most {
					t.Errorf("%d reads in ten minutes, want %d to %d", reads, c.least, c.most)
				}
				n := strings.Count(seen.logged(), "source failed")
				if n > 1 || (n == 1) != (c.err != nil) {
					t.Errorf("the failure is logged %d times", n)
				}
			})
		})
	}
}

// A page that was there is not taken for one that the server does not have.
func TestAPageThatIsMissingOnceIsReadSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sampled []time.Time
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		r, err := New(DefaultConfig(), Deps{Logger: slog.New(slog.DiscardHandler),
			OnSample: func(Sample) { sampled = append(sampled, time.Now()) }})
		if err != nil {
			t.Fatal(err)
		}
		reads := 0
		s := source{target: "r", kind: "metrics", every: time.Second, timeout: time.Second}
		s.read = func(context.Context) ([]Sample, error) {
			if reads++; reads == 2 {
				return nil, errUnknownPage
			}
			of := flowcontrol.NoReading(flowcontrol.Metrics, time.Now())
			return []Sample{{Runner: "r", Reading: &of}}, nil
		}
		r.poll(ctx, s)
		if len(sampled) < 2 || sampled[1].Sub(sampled[0]) > longestPause {
			t.Errorf("%d samples, at %v, want the second within %v", len(sampled), sampled,
				longestPause)
		}
	})
}

func TestAReadThatHangsTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := New(DefaultConfig(), Deps{
			Logger: slog.New(slog.DiscardHandler), OnSample: func(Sample) {}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		reads := 0
		s := source{target: "r", kind: "metrics", every: time.Second, timeout: 2 * time.Second}
		s.read = func(ctx context.Context) ([]Sample, error) {
			reads++
			<-ctx.Done()
			return nil, ctx.Err()
		}
		r.poll(ctx, s)
		if reads < 8 {
			t.Errorf("%d reads in a minute", reads)
		}
	})
}

// fakePrometheus answers instant queries from a table: with the first answer whose key is part of
// the query.
func fakePrometheus(t *testing.T, answers ...[2]string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.FormValue("query")
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/query" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		result := "[]"
		for _, a := range answers {
			if strings.Contains(query, a[0]) {
				result = a[1]
				break
			}
		}
		if strings.HasPrefix(result, "error ") {
			w.WriteHeader(http.StatusUnprocessableEntity)
			json.NewEncoder(w).Encode(map[string]string{"status": "error", "error": result[6:]})
			return
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":%s}}`, result)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func bucket(m, le string, count int) string {
	return fmt.Sprintf(`{"metric":{"le":%q,"model_name":%q},"value":[1700000100,"%d"]}`, le, m,
		count)
}

func TestInteractiveLatenciesOfPrometheus(t *testing.T) {
	at := func(m string, seconds float64) string {
		return fmt.Sprintf(`{"metric":{"model_name":%q},"value":[1700000100,"%v"]}`, m, seconds)
	}
	cfg := quick()
	cfg.Prometheus.URL = fakePrometheus(t,
		[2]string{"timestamp(inference_objective_request_ttft", "[" + at("a", 1700000090.5) + "," +
			at("b", 1700000095) + "]"},
		[2]string{"timestamp(llm_d_epp_request_streaming_tpot", "[" + at("a", 1700000080) + "]"},
		[2]string{"(inference_objective_request_ttft_seconds_bucket", "[" + strings.Join([]string{
			bucket("a", "+Inf", 100), bucket("a", "1", 80), bucket("a", "2.5", 95), bucket(
				"b", "2", 3), bucket("b", "+Inf", 3), bucket("c", "+Inf", 3)}, ",") + "]"},
		[2]string{"(llm_d_epp_request_streaming_tpot_seconds_bucket", "[" + strings.Join([]string{
			bucket("a", "0.1", 50), bucket("a", "+Inf", 60)}, ",") + "]"},
		[2]string{"timestamp(llm_d_epp_request_input_tokens", "[" + at("a", 1700000085) + "," +
			at("d", 1700000070) + "]"},
		[2]string{"timestamp(inference_objective_output_tokens", "[" + at("a", 1700000079) + "]"},
		[2]string{"(llm_d_epp_request_input_tokens_bucket", "[" + strings.Join([]string{
			bucket("a", "128", 5), bucket("a", "+Inf", 100), bucket("d", "+Inf", 2)}, ",") + "]"},
		[2]string{"(inference_objective_output_tokens_bucket", "[" + strings.Join([]string{
			bucket("a", "16", 40), bucket("a", "+Inf", 90)}, ",") + "]"},
	)
	seen := newCollector()
	seen.run(t, cfg, func() bool { return len(seen.of(flowcontrol.Gateway)) >= 6 })
	got := seen.of(flowcontrol.Gateway)[:3]
	want := []Sample{
		{Model: "a", Reading: &flowcontrol.Reading{}},
		{Model: "b", Reading: &flowcontrol.Reading{}},
		{Model: "d", Reading: &flowcontrol.Reading{}},
	}
	*want[0].Reading = reading(flowcontrol.Gateway, func(r *flowcontrol.Reading) {
		r.Sampled = time.UnixMilli(1700000079000) // the oldest of all histograms
		r.PromptLengths = buckets(128, 5, math.Inf(1), 100)
		r.AnswerLengths, r.Requests = buckets(16, 40, math.Inf(1), 90), 90
		r.FirstTokenTimes = []flowcontrol.Bucket{{Upper: 1, Count: 80}, {Upper: 2.5, Count: 95},
			{Upper: math.Inf(1), Count: 100}}
		r.TokenTimes = []flowcontrol.Bucket{{Upper: 0.1, Count: 50},
			{Upper: math.Inf(1), Count: 60}}
	})
	*want[1].Reading = reading(flowcontrol.Gateway, func(r *flowcontrol.Reading) {
		r.Sampled = time.UnixMilli(1700000095000)
		r.FirstTokenTimes, r.Requests = buckets(2, 3, math.Inf(1), 3), 3
	})
	*want[2].Reading = reading(flowcontrol.Gateway, func(r *flowcontrol.Reading) {
		r.Sampled = time.UnixMilli(1700000070000)
		r.PromptLengths, r.Requests = buckets(math.Inf(1), 2), 2
	})
	if len(got[0].TTFT) != 3 || len(got[0].TPOT) != 2 || len(got[1].TTFT) != 2 {
		t.Errorf("histograms are %+v", got)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-9),
		cmpopts.IgnoreFields(Sample{}, "TTFT", "TPOT")); diff != "" {
		t.Error(diff)
	}
}

// A histogram that has counted nothing does not hide one that has, but is used if none has.
func TestHistogramsThatHaveCountedAreUsed(t *testing.T) {
	series := func(of, value string) [2][2]string {
		return [2][2]string{{"timestamp(" + of, `[{"metric":{},"value":[1,"1700000090"]}]`},
			{"(" + of, `[{"metric":{"le":"1"},"value":[1,"0"]},` +
				`{"metric":{"le":"+Inf"},"value":[1,"` + value + `"]}]`}}
	}
	for last, want := range map[string]float64{"7": 7, "0": 0} {
		first, second := series("new_seconds", "0"), series("old_seconds", last)
		cfg := quick()
		cfg.Prometheus.URL = fakePrometheus(t, first[0], first[1], second[0], second[1])
		cfg.Prometheus.TTFT = []string{"none_seconds", "new_seconds", "old_seconds"}
		seen := newCollector()
		seen.run(t, cfg, func() bool { return len(seen.of(flowcontrol.Gateway)) > 0 })
		r := seen.of(flowcontrol.Gateway)[0].Reading
		used := map[bool]string{true: "ttft=old_seconds", false: "ttft=new_seconds"}[want > 0]
		if r.Requests != want || !strings.Contains(seen.logged(), used) {
			t.Errorf("%v requests, want %v and %s in the log:\n%s", r.Requests, want, used,
				seen.logged())
		}
	}
}

// A gateway that has restarted has counted nothing, and is not exchanged for another.
func TestAHistogramThatHasCountedStaysInUse(t *testing.T) {
	values := map[string]string{"a_seconds": "9", "b_seconds": "5"}
	cfg := DefaultConfig().Prometheus
	cfg.TTFT, cfg.TPOT = []string{"a_seconds", "b_seconds"}, nil
	cfg.PromptLengths, cfg.AnswerLengths = nil, nil
	var q *promQuery
	for i, want := range []float64{9, 0, 4} {
		values["a_seconds"] = fmt.Sprint(want)
		var answers [][2]string
		for _, name := range cfg.TTFT {
			answers = append(answers,
				[2]string{"timestamp(" + name, `[{"metric":{},"value":[1,"1700000090"]}]`},
				[2]string{"(" + name, `[{"metric":{"le":"+Inf"},"value":[1,"` + values[name] +
					`"]}]`})
		}
		cfg.URL = fakePrometheus(t, answers...)
		if i == 0 {
			q = newPromQuery(cfg, accessTo(t, cfg.URL, func(*Prometheus) {}),
				slog.New(slog.DiscardHandler), nil)
		}
		q.cfg.URL = cfg.URL
		samples, err := q.read(t.Context())
		if err != nil || samples[0].Reading.Requests != want {
			t.Errorf("got %+v, %v, want %v requests", samples, err, want)
		}
	}
}

// A histogram that has counted and is missing for a while is not exchanged for one that has counted
// nothing: when it came back, all that it has ever counted would be new.
func TestAHistogramThatIsMissingIsAwaited(t *testing.T) {
	cfg := DefaultConfig().Prometheus
	cfg.TTFT, cfg.TPOT = []string{"new_seconds", "old_seconds"}, nil
	cfg.PromptLengths, cfg.AnswerLengths = nil, nil
	var q *promQuery
	for _, test := range []struct {
		old     string        // empty: the scrape has failed
		missing time.Duration // longer
		want    float64       // -1: there is no histogram
	}{
		{"100000", 0, 100_000}, {"", 0, -1}, {"", goneAfter / 2, -1}, {"100010", 0, 100_010},
		{"0", 0, 0}, {"3", 0, 3}, {"", 0, -1}, {"", goneAfter, 0}, {"", 0, 0}, {"7", 0, 7},
	} {
		values := map[string]string{"new_seconds": "0", "old_seconds": test.old}
		var answers [][2]string
		for name, value := range values {
			if value != "" {
				answers = append(answers,
					[2]string{"timestamp(" + name, `[{"metric":{},"value":[1,"1700000090"]}]`},
					[2]string{"(" + name, `[{"metric":{"le":"+Inf"},"value":[1,"` + value + `"]}]`})
			}
		}
		cfg.URL = fakePrometheus(t, answers...)
		if q == nil {
			q = newPromQuery(cfg, accessTo(t, cfg.URL, func(*Prometheus) {}),
				slog.New(slog.DiscardHandler), func(drop) {})
		}
		q.cfg.URL = cfg.URL
		if since, known := q.missing["ttft"]; known {
			q.missing["ttft"] = since.Add(-test.missing)
		}
		samples, err := q.read(t.Context())
		got := -1.0
		if len(samples) > 0 {
			got = samples[0].Reading.Requests
		}
		if got != test.want || (err != nil) != errors.Is(err, errNoData) {
			t.Errorf("%+v: got %v requests, %v", test, got, err)
		}
	}
}

// A histogram of the gateway that is gone is dropped and counted; one that never was there is not.
func TestAGatewaysHistogramThatIsGoneIsCounted(t *testing.T) {
	series := func(of string) [2][2]string {
		return [2][2]string{{"timestamp(" + of,
			`[{"metric":{"model_name":"a"},"value":[1700000100,"1700000090"]}]`},
			{"(" + of + "_seconds_bucket", "[" + bucket("a", "+Inf", 100) + "]"}}
	}
	first := series("inference_objective_request_ttft")
	each := series("llm_d_epp_request_streaming_tpot")
	both := fakePrometheus(t, first[0], first[1], each[0], each[1])
	one := fakePrometheus(t, first[0], first[1])
	var dropped []drop
	cfg := DefaultConfig().Prometheus
	cfg.URL = both
	to, err := newAccess(cfg)
	if err != nil {
		t.Fatal(err)
	}
	q := newPromQuery(cfg, to, slog.New(slog.DiscardHandler),
		func(d drop) { dropped = append(dropped, d) })
	for _, url := range []string{both, one, one} {
		q.cfg.URL = url
		if got, err := q.read(t.Context()); err != nil || len(got) != 1 {
			t.Fatalf("%+v, %v; want one sample", got, err)
		}
	}
	want := []drop{{"tpot", faultAbsent}, {"tpot", faultAbsent}}
	if diff := cmp.Diff(want, dropped, cmp.AllowUnexported(drop{})); diff != "" {
		t.Errorf("dropped (-want +got)\n%s", diff)
	}
}

// The defaults know the histograms of Dynamo's frontend, whose label of the model is another.
func TestHistogramsOfDynamo(t *testing.T) {
	count := func(le string, n int) string {
		return fmt.Sprintf(`{"metric":{"le":%q,"model":"m"},"value":[1,"%d"]}`, le, n)
	}
	cfg := quick()
	cfg.Prometheus.URL = fakePrometheus(t,
		[2]string{"timestamp(dynamo_", `[{"metric":{"model":"m"},"value":[1,"1700000090"]}]`},
		[2]string{"(dynamo_frontend_time_to_first_token_seconds_bucket",
			"[" + count("2", 3) + "," + count("+Inf", 4) + "]"},
		[2]string{"(dynamo_frontend_inter_token_latency_seconds_bucket", "[" + count("+Inf", 9) +
			"]"},
		[2]string{"(dynamo_frontend_input_sequence_tokens_bucket", "[" + count("+Inf", 5) + "]"},
		[2]string{"(dynamo_frontend_output_sequence_tokens_bucket", "[" + count("+Inf", 6) + "]"})
	seen := newCollector()
	seen.run(t, cfg, func() bool { return len(seen.of(flowcontrol.Gateway)) > 0 })
	want := reading(flowcontrol.Gateway, func(r *flowcontrol.Reading) {
		r.FirstTokenTimes, r.TokenTimes = buckets(2, 3, math.Inf(1), 4), buckets(math.Inf(1), 9)
		r.PromptLengths, r.AnswerLengths = buckets(math.Inf(1), 5), buckets(math.Inf(1), 6)
		r.Requests = 6
	})
	got := seen.of(flowcontrol.Gateway)[0]
	if diff := cmp.Diff(want, *got.Reading, equalReadings); diff != "" || got.Model != "m" {
		t.Errorf("model %q: %s", got.Model, diff)
	}
}

func TestModelLabelIsOneOrSeveral(t *testing.T) {
	for text, want := range map[string]Labels{
		"a": {"a"}, "[a, b]": {"a", "b"}, `""`: nil, "[]": {},
	} {
		var got Labels
		if err := yaml.Unmarshal([]byte(text), &got); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestPrometheusWithoutDataGivesNoSamples(t *testing.T) {
	cfg := quick()
	for name, c := range map[string]struct{ url, want string }{
		"no series": {fakePrometheus(t), "Prometheus has no interactive latencies"},
		"an error": {fakePrometheus(t, [2]string{"", "error too many samples"}),
			"too many samples"},
		"no answer": {"http://127.0.0.1:1", "telemetry source failed"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Prometheus.URL = c.url
			seen := newCollector()
			seen.run(t, cfg, func() bool { return strings.Contains(seen.logged(), c.want) })
			if got := seen.of(flowcontrol.Gateway); len(got) > 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestValidateNamesTheKey(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"every":          func(c *Config) { c.Every = -1 },
		"prometheus.url": func(c *Config) { c.Prometheus.URL = "prometheus:9090" },
		"prometheus.tuning.every": func(c *Config) {
			c.Prometheus.URL, c.Prometheus.Every = "http://p", 0
		},
		"prometheus.ttft[0]": func(c *Config) {
			c.Prometheus.URL, c.Prometheus.TTFT = "http://p", []string{"a{"}
		},
		"prometheus.tpot[0]": func(c *Config) {
			c.Prometheus.URL, c.Prometheus.TPOT = "http://p", []string{""}
		},
		"prometheus.tpot[1]": func(c *Config) { // also while nothing is read from it
			c.Prometheus.TPOT = []string{"a", "9a"}
		},
		"prometheus.prompt_lengths[0]": func(c *Config) {
			c.Prometheus.URL, c.Prometheus.PromptLengths = "http://p", []string{"a{"}
		},
		"prometheus.answer_lengths[1]": func(c *Config) {
			c.Prometheus.URL, c.Prometheus.AnswerLengths = "http://p", []string{"a", ""}
		},
		"prometheus.ttft: is": func(c *Config) {
			c.Prometheus.URL, c.Prometheus.TTFT, c.Prometheus.TPOT = "http://p", nil, nil
		},
		"prometheus.model_label:": func(c *Config) {
			c.Prometheus.URL, c.Prometheus.ModelLabel = "http://p", Labels{"a", "a b"}
		},
	} {
		c := DefaultConfig()
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want a fault of %s", err, want)
		}
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	c := DefaultConfig()
	c.Signals = filepath.Join(t.TempDir(), "none")
	if _, err := New(c, Deps{Logger: slog.New(slog.DiscardHandler)}); err == nil ||
		!strings.Contains(err.Error(), "telemetry.signals") {
		t.Errorf("a signal map that does not exist: %v", err)
	}
	c.Signals = filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(c.Signals, builtInSignals, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(c, Deps{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Error(err)
	}
}

func FuzzPage(f *testing.F) {
	f.Add("vllm:num_requests_running{a=\"b\"} 3 5000\n" +
		"# TYPE x histogram\nx_bucket{le=\"1\"} 2\nx_sum 1\n")
	f.Add("tgi_batch_current_size 1\ntgi_request_generated_tokens_sum NaN\n")
	f.Add("vllm:num_requests_running 1\n" +
		"vllm:cache_config_info{num_gpu_blocks=\"1e308\",block_size=\"1e308\"} 1\n")
	f.Add("vllm:num_requests_running 1\nvllm:kv_cache_usage_perc -1 9\n" +
		"vllm:inter_token_latency_seconds_bucket{le=\"NaN\"} 1e308\n")
	m := builtIn(f)
	wanted := m.metrics()
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePage(strings.NewReader(text), wanted)
		if err != nil {
			return
		}
		r, _ := m.read(p, time.Unix(1, 0))
		for _, s := range signals {
			if v := *s.field(&r); v < 0 || math.IsInf(v, 0) {
				t.Errorf("%s is %v on %q", s.name, v, text)
			}
		}
		for _, h := range histograms {
			if got := *h.field(&r); len(got) > 0 && faultOfBuckets(got) != "" {
				t.Errorf("%s is %v on %q", h.name, got, text)
			}
		}
	})
}

func FuzzSelector(f *testing.F) {
	f.Add(`a:b{c="d",e!~"f.*"}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSelector(text)
		if err != nil {
			return
		}
		again, err := parseSelector(s.String())
		if err != nil || again.String() != s.String() {
			t.Errorf("%q parses as %q, and that as %q, %v", text, s, again, err)
		}
	})
}

// A reader that replaces another publishes its own state only, in the same metrics.
func TestReaderReplacesAnother(t *testing.T) {
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "vllm:num_requests_running 1\n")
	}))
	defer good.Close()
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	registry := prometheus.NewRegistry()
	run := func(url string, until func(seen *collector) bool) {
		seen, cfg := newCollector(), quick()
		cfg.CapabilitiesEvery = 0
		r, err := New(cfg, Deps{OnSample: seen.add, Registerer: registry,
			Runners: []Runner{{Name: url, Base: url, Metrics: url + "/metrics"}},
			Logger:  slog.New(slog.NewTextHandler(seen, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		for !until(seen) && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		if ctx.Err() != nil {
			t.Errorf("%s: never as wanted; degraded: %v", url, degraded(t, registry))
		}
		stop()
		<-ended
	}
	run(away.URL, func(*collector) bool { return len(degraded(t, registry)) == 1 })
	run(good.URL, func(seen *collector) bool {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		return len(seen.samples) > 0
	})
	if states := degraded(t, registry); len(states) > 0 {
		t.Errorf("the runner that is read no more is %v", states)
	}
}
