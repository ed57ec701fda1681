package emulator

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	prometheus "github.com/prometheus/common/model"

	"github.com/tidefill/tidefill/runner"
)

func serve(t testing.TB, s *Server) string {
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	return web.URL
}

func scrape(t testing.TB, url string) map[string]*dto.MetricFamily {
	t.Helper()
	_, body := get(t, url+"/metrics")
	parser := expfmt.NewTextParser(prometheus.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

func value(t testing.TB, families map[string]*dto.MetricFamily, name string) float64 {
	t.Helper()
	f := families[name]
	if f == nil {
		t.Fatalf("no metric %s", name)
	}
	m := f.Metric[0]
	switch {
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	case m.Counter != nil:
		return m.Counter.GetValue()
	}
	return float64(m.Histogram.GetSampleCount())
}

func TestMetricsAreVLLMs(t *testing.T) {
	const speedup = 200
	_, url := start(t, func(c *Config) { c.Profile = "llama-8b-a100" })
	body := `{"model":"m","prompt":"` + strings.Repeat("x", 360) +
		`","max_tokens":101,"ignore_eos":true}`
	if resp, answer := post(t, url+"/v1/completions", body); resp.StatusCode != 200 {
		t.Fatal(answer)
	}
	families := scrape(t, url)
	for name, want := range map[string]float64{
		"vllm:num_requests_running": 0, "vllm:num_requests_waiting": 0,
		"vllm:kv_cache_usage_perc": 0, "vllm:num_preemptions_total": 0,
		"vllm:prompt_tokens_total": 100, "vllm:generation_tokens_total": 101,
		"vllm:prefix_cache_queries_total": 100, "vllm:prefix_cache_hits_total": 0,
		"vllm:time_to_first_token_seconds": 1, "vllm:inter_token_latency_seconds": 100,
		"vllm:e2e_request_latency_seconds": 1,
		"vllm:request_queue_time_seconds":  1, "vllm:request_time_per_output_token_seconds": 1,
		"vllm:request_prompt_tokens": 1, "vllm:request_generation_tokens": 1,
	} {
		if got := value(t, families, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]float64{
		"vllm:request_prompt_tokens": 100, "vllm:request_generation_tokens": 101,
	} {
		h := families[name].Metric[0].Histogram
		if got := h.GetSampleSum(); got != want {
			t.Errorf("%s has the sum %v, want %v", name, got, want)
		}
		if last := h.Bucket[len(h.Bucket)-2].GetUpperBound(); last != 20_000 {
			t.Errorf("%s has edges up to %v, want 20000", name, last)
		}
	}
	for name, f := range families {
		labels := map[string]string{}
		for _, l := range f.Metric[0].Label {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["model_name"] != "m" || labels["engine"] != "0" {
			t.Errorf("%s has labels %v", name, labels)
		}
		if name == "vllm:cache_config_info" && (labels["block_size"] != "16" ||
			labels["num_gpu_blocks"] != "25000") {
			t.Errorf("cache info: %v", labels)
		}
	}
	for _, m := range families["vllm:request_success_total"].Metric {
		reason := m.Label[1].GetValue()
		if got, want := m.Counter.GetValue(), map[string]float64{"length": 1,
			"stop": 0}[reason]; got != want {
			t.Errorf("success %s: %v, want %v", reason, got, want)
		}
	}
	// One decoding request of this profile takes 12.3 ms a token, 200 times as fast.
	gaps := families["vllm:inter_token_latency_seconds"].Metric[0].Histogram
	if mean := 1000 * speedup * gaps.GetSampleSum() / float64(gaps.GetSampleCount()); math.Abs(
		mean-12.35) > 0.1 {
		t.Errorf("mean gap %.2f ms, want 12.35", mean)
	}
}

func TestPrefixCacheHeaders(t *testing.T) {
	_, url := start(t)
	body := `{"model":"m","prompt":"` + strings.Repeat("tide and ebb ", 100) + `","max_tokens":1}`
	reused := func(headers ...string) string {
		resp, answer := post(t, url+"/v1/completions", body, headers...)
		if resp.StatusCode != 200 {
			t.Fatal(answer)
		}
		if hit := resp.Header.Get(runner.HeaderCacheHit); (hit == "true") != (resp.Header.Get(
			runner.HeaderCacheTokensReused) != "0") {
			t.Errorf("hit %s, reused %s", hit, resp.Header.Get(runner.HeaderCacheTokensReused))
		}
		return resp.Header.Get(runner.HeaderCacheTokensReused)
	}
	// 1,300 bytes are 362 tokens, 22 full blocks.
	for i, test := range []struct {
		headers []string
		want    string
	}{
		{nil, "0"}, {nil, "352"},
		{[]string{"X-Cache-Mode", "none"}, "0"},
		{[]string{"X-Cache-Tag", "s1"}, "0"},
		{[]string{"X-Cache-Tag", "s1", "X-Cache-Mode", "prefix"}, "352"},
	} {
		if got := reused(test.headers...); got != test.want {
			t.Errorf("request %d %v: %s tokens reused, want %s", i, test.headers, got, test.want)
		}
	}
}

// hold begins requests and returns once all are in the engine; stop ends them.
func hold(t *testing.T, s *Server, url string, n int, headers ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var held sync.WaitGroup
	had := s.Snapshot()
	for i := range n {
		held.Go(func() {
			body := fmt.Sprintf(`{"model":"m","prompt":"%d","max_tokens":30000,"ignore_eos":true}`,
				i)
			r, _ := http.NewRequestWithContext(ctx, "POST", url+"/v1/completions",
				strings.NewReader(body))
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			if resp, err := http.DefaultClient.Do(r); err == nil {
				resp.Body.Close()
			}
		})
	}
	until(t, func() bool {
		now := s.Snapshot()
		return now.Running+now.Waiting == had.Running+had.Waiting+n
	})
	return func() { cancel(); held.Wait() }
}

// until polls for the real-time engine to get somewhere; the test's own time
// limit ends it.
func until(t testing.TB, reached func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !reached() {
		select {
		case <-t.Context().Done():
			t.Fatal("gave up")
		case <-tick.C:
		}
	}
}

func TestQueueFull(t *testing.T) {
	s, url := start(t, func(c *Config) { c.MaxSeqs, c.MaxQueueDepth, c.Speedup = 1, 2, 1 })
	stop := hold(t, s, url, 3)
	resp, body := post(t, url+"/v1/chat/completions", hello)
	failure := decode[runner.ErrorBody](t, body).Error
	if resp.StatusCode != 503 || failure.Code != runner.CodeQueueFull ||
		failure.QueueDepth == nil || *failure.QueueDepth != 2 ||
		resp.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
	if resp, _ := get(t, url+"/health"); resp.StatusCode != 503 {
		t.Errorf("health with a full queue: %d", resp.StatusCode)
	}
	stop()
	until(t, func() bool { return s.Snapshot().Running == 0 && s.Snapshot().Waiting == 0 })
	if got := s.Snapshot().Aborted; got != 3 {
		t.Errorf("%d requests aborted when their clients left, want 3", got)
	}
}

// With one slot taken, a waiting request of a better priority is served first, whenever it
// arrived: the streams' first tokens show the order.
func TestPriorityOrdersTheQueue(t *testing.T) {
	s, url := start(t, func(c *Config) { c.MaxSeqs, c.Speedup = 1, 1 })
	stop := hold(t, s, url, 1)
	order := make(chan string, 3)
	var streams sync.WaitGroup
	for i, r := range []struct{ header, body string }{{"low", ""}, {"normal", ""},
		{"low", `,"priority":-5`}} {
		streams.Go(func() {
			body := `{"model":"m","prompt":"x","max_tokens":6,"ignore_eos":true,"stream":true` +
				r.body + `}`
			req, _ := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/completions",
				strings.NewReader(body))
			req.Header.Set("X-Priority", r.header)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			bufio.NewReader(resp.Body).ReadString('\n')
			order <- r.header + r.body
		})
		until(t, func() bool { return s.Snapshot().Waiting == i+1 })
	}
	stop()
	streams.Wait()
	for _, want := range []string{`low,"priority":-5`, "normal", "low"} {
		if got := <-order; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestInteractiveLoad(t *testing.T) {
	s, url := start(t, func(c *Config) {
		c.Interactive.RPS, c.Interactive.Swing, c.Interactive.Period = 5, 0.5, 60
		c.Speedup = 2000
	})
	until(t, func() bool { return s.Snapshot().Finished > 50 })
	families := scrape(t, url)
	if got := value(t, families, "emulator_interactive_time_to_first_token_seconds"); got < 50 {
		t.Errorf("%v interactive requests got a first token, want over 50", got)
	}
	if got := s.Requests().Received; got != 0 {
		t.Errorf("%d interactive requests in the ledger of HTTP requests", got)
	}
}

func TestRateOfInteractiveLoadSwings(t *testing.T) {
	load := Interactive{RPS: 10, Swing: 0.5, Period: 100}
	for second, want := range map[int]float64{0: 10, 25: 15, 50: 10, 75: 5} {
		if got := load.rate(seconds(second)); math.Abs(got-want) > 1e-9 {
			t.Errorf("rate at %d s is %v, want %v", second, got, want)
		}
	}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func TestRequestsInFlightAreRefusedWhenRunEnds(t *testing.T) {
	c := DefaultConfig()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	url := serve(t, s)
	until(t, s.serving)
	status := make(chan int, 1)
	go func() {
		code, _, _ := try(t, t.Context(), url+"/v1/completions",
			`{"model":"emulated-model","prompt":"x","max_tokens":3000,"ignore_eos":true}`)
		status <- code
	}()
	until(t, func() bool { return s.Snapshot().Running == 1 })
	cancel()
	if got := <-status; got != 503 {
		t.Errorf("status %d, want 503", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestSlowFault(t *testing.T) {
	mean := func(f Faults) float64 {
		_, url := start(t, func(c *Config) { c.Profile, c.Faults = "llama-8b-a100", f })
		post(t, url+"/v1/completions",
			`{"model":"m","prompt":"x","max_tokens":50,"ignore_eos":true}`)
		h := scrape(t, url)["vllm:inter_token_latency_seconds"].Metric[0].Histogram
		return h.GetSampleSum() / float64(h.GetSampleCount())
	}
	usual := mean(Faults{})
	if got := mean(Faults{Slow: 3}) / usual; math.Abs(got-3) > 0.05 {
		t.Errorf("slow 3: iterations take %.2f times as long", got)
	}
	if got := mean(Faults{Stall: 1, StallFor: Duration(seconds(1) / 1000)}) -
		usual; math.Abs(got-0.001) > 0.0001 {
		t.Errorf("stalls of 1 ms lengthen iterations by %v s", got)
	}
}
