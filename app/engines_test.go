package app_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/runner/emulator"
)

// fewLines is a quarter of the sequences that the emulated engine runs at once.
const fewLines = 64

// The default policy works with what each engine exports, when it exports it: lines end while users
// are there, and there are never as many as the runner may carry at most.
func TestDefaultPolicyReadsEachEngine(t *testing.T) {
	for _, test := range []struct {
		engine  emulator.Engine
		page    string
		signals []string // that must be found
	}{
		{emulator.VLLM, "/metrics", []string{"vllm:inter_token_latency_seconds_count",
			"vllm:prompt_tokens_cached_total", "vllm:num_requests_running"}},
		{emulator.SGLang, "/metrics", []string{"sglang:inter_token_latency_seconds_count",
			`sglang:realtime_tokens_total{mode="decode"}`, "sglang:max_total_num_tokens",
			`sglang:realtime_tokens_total{mode=~"prefill_compute|prefill_cache"}`}},
		{emulator.TensorRTLLM, "/prometheus/metrics", []string{"trtllm_num_requests_running",
			"trtllm_kv_cache_utilization", "trtllm_generation_tokens_total"}},
	} {
		t.Run(string(test.engine), func(t *testing.T) {
			t.Parallel()
			url := serveEngine(t, test.engine)
			cfg := apptest.Config(t.TempDir(), url)
			cfg.Upstreams[0].Metrics = url + test.page
			cfg.FlowControl = config.Default().FlowControl
			// Users who come within the first minute are watched first: for 20 s with an
			// objective, for what is left of the minute without one.
			cfg.FlowControl.SLO.TTFT, cfg.FlowControl.SLO.TPOT = 2*time.Second, 50*time.Millisecond
			registry := prometheus.NewRegistry()
			daemon, _ := apptest.Start(t, cfg, app.Options{Registry: registry})
			apptest.Submit(t, daemon, 20_000)
			d := &watched{t: t, registry: registry}
			d.await("lines", 20*time.Second, func() bool {
				return d.sum("tidefill_lines_total", "completed") > 0
			})
			for _, metric := range test.signals {
				if d.sum("tidefill_signal_resolved", metric) != 1 {
					t.Errorf("no signal is read from %s", metric)
				}
			}
			useAs(t, url, 6)
			d.await("that users are seen", 10*time.Second, func() bool {
				return d.sum("tidefill_runner_interactive_requests", "running") > 0.5
			})
			begun := d.sum("tidefill_lines_total", "completed")
			d.await("more lines beside users", 75*time.Second, func() bool {
				return d.sum("tidefill_lines_total", "completed") > begun+5
			})
			if d.most > fewLines {
				t.Errorf("%v lines were in flight at once, want %d at most", d.most, fewLines)
			}
			if n := d.sum("tidefill_reading_degraded", "metrics"); n > 0 {
				t.Errorf("the metrics count as degraded")
			}
		})
	}
}

// serveEngine serves an emulated runner of the model "m" with an engine's metrics.
func serveEngine(t *testing.T, engine emulator.Engine) (url string) {
	t.Helper()
	c := emulator.DefaultConfig()
	c.Profile, c.Models, c.Engine = "llama-8b-a100", []string{"m"}, engine
	c.APIServers = 3 // iteration_tokens_total of vLLM counts an iteration up to three times
	return apptest.StartEngine(t, c)
}

// useAs sends the requests of n users, one after the other of each, until the test ends.
func useAs(t *testing.T, url string, n int) {
	ctx, stop := context.WithCancel(context.Background())
	var users sync.WaitGroup
	t.Cleanup(func() {
		stop()
		users.Wait()
	})
	for i := range n {
		users.Go(func() {
			for turn := 0; ctx.Err() == nil; turn++ {
				body := fmt.Sprintf(`{"model":"m","stream":true,"max_tokens":150,`+
					`"ignore_eos":true,"messages":[{"role":"user","content":"%d %d"}]}`, i, turn)
				request, err := http.NewRequestWithContext(ctx, "POST",
					url+"/v1/chat/completions", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				request.Header.Set("Content-Type", "application/json")
				response, err := http.DefaultClient.Do(request)
				if err != nil {
					continue
				}
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
		})
	}
}

// watched reads a daemon's metrics.
type watched struct {
	t        *testing.T
	registry *prometheus.Registry
	most     float64 // lines in flight at once so far
}

// sum adds up the series of a metric that have a label of the given value.
func (w *watched) sum(metric, label string) (sum float64) {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			value := m.Gauge.GetValue() + m.Counter.GetValue()
			if f.GetName() == "tidefill_runner_in_flight_lines" {
				w.most = max(w.most, value)
			}
			for _, l := range m.Label {
				if f.GetName() == metric && l.GetValue() == label {
					sum += value
				}
			}
		}
	}
	return sum
}

// await waits until a condition holds that reads the metrics.
func (w *watched) await(what string, limit time.Duration, holds func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("not so after %v: %s", limit, what)
		}
	}
}
