package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/flowcontrol"
)

func TestValuesThatCantBeTrueAreAbsent(t *testing.T) {
	const gaps = "vllm:inter_token_latency_seconds_bucket"
	nan := math.NaN()
	for name, c := range map[string]struct {
		page string
		want drop
		of   func(*flowcontrol.Reading) float64
	}{
		"running of one rank": {"vllm:num_requests_running{engine=\"1\"} NaN\n",
			drop{"running", faultNotFinite},
			func(r *flowcontrol.Reading) float64 { return r.Running }},
		"waiting": {"vllm:num_requests_waiting -1\n", drop{"waiting", faultNegative},
			func(r *flowcontrol.Reading) float64 { return r.Waiting }},
		"KV of one rank": {"vllm:kv_cache_usage_perc{engine=\"0\"} 0.5\n" +
			"vllm:kv_cache_usage_perc{engine=\"1\"} -0.5\n", drop{"kv_used", faultNegative},
			func(r *flowcontrol.Reading) float64 { return r.KVUsed }},
		"a counter": {"vllm:generation_tokens_total +Inf\n", drop{"output_tokens", faultNotFinite},
			func(r *flowcontrol.Reading) float64 { return r.OutputTokens }},
		"a sum that overflows": {"vllm:prompt_tokens_total{engine=\"0\"} 1e308\n" +
			"vllm:prompt_tokens_total{engine=\"1\"} 1e308\n",
			drop{"prompt_tokens", faultNotFinite},
			func(r *flowcontrol.Reading) float64 { return r.PromptTokens }},
		"an older name beside": {"vllm:kv_cache_usage_perc NaN\nvllm:gpu_cache_usage_perc 0.1\n",
			drop{"kv_used", faultNotFinite},
			func(r *flowcontrol.Reading) float64 { return r.KVUsed }},
		"a bucket": {gaps + "{le=\"1\"} NaN\n" + gaps + "{le=\"+Inf\"} 3\n",
			drop{"gap_times", faultNotFinite}, func(r *flowcontrol.Reading) float64 {
				return nan * float64(1+len(r.GapTimes))
			}},
		"a bucket below zero": {gaps + "{le=\"1\"} -1\n" + gaps + "{le=\"+Inf\"} 3\n",
			drop{"gap_times", faultNegative}, nil},
		"no last bucket": {gaps + "{le=\"1\"} 3\n", drop{"gap_times", faultIncomplete}, nil},
		"no edge":        {gaps + "{le=\"x\"} 3\n", drop{"gap_times", faultNotFinite}, nil},
		"an edge that is no number": {gaps + "{le=\"NaN\"} 3\n" + gaps + "{le=\"+Inf\"} 3\n",
			drop{"gap_times", faultNotFinite}, nil},
		"an edge below all numbers": {gaps + "{le=\"-Inf\"} 0\n" + gaps + "{le=\"+Inf\"} 3\n",
			drop{"gap_times", faultNotFinite}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			text := "vllm:num_requests_running{engine=\"0\"} 3\n" + c.page
			p, err := parsePage(strings.NewReader(text), builtIn(t).metrics())
			if err != nil {
				t.Fatal(err)
			}
			r, found := builtIn(t).read(p, time.Unix(1, 0))
			if !slices.Contains(found.dropped, c.want) || found.engine != "vllm" {
				t.Errorf("engine %q dropped %v, want %v", found.engine, found.dropped, c.want)
			}
			if c.of != nil && !math.IsNaN(c.of(&r)) || len(r.GapTimes) > 0 {
				t.Errorf("got %+v, want the value absent", r)
			}
		})
	}
}

// newMetrics returns the reader of a page, and the drops that it counts.
func newMetrics(t testing.TB, url string) (*metrics, map[drop]int) {
	m, drops := builtIn(t), map[drop]int{}
	return &metrics{runner: Runner{Name: "r", Base: url, Metrics: url + "/metrics"},
		client: &http.Client{Transport: newTransport()}, signals: m, wanted: m.metrics(),
		log: slog.New(slog.DiscardHandler), onChange: func(usedMetrics) {},
		onDrop: func(d drop) { drops[d]++ }, shown: map[string]bool{}}, drops
}

func TestSignalsThatDisappearAreCounted(t *testing.T) {
	page := "vllm:num_requests_running 1\nvllm:num_requests_waiting 2\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, page)
	}))
	defer server.Close()
	m, drops := newMetrics(t, server.URL)
	for range 2 {
		samples, err := m.read(t.Context())
		if err != nil || len(drops) > 0 && !math.IsNaN(samples[0].Reading.Waiting) {
			t.Fatalf("got %+v, %v", samples, err)
		}
		page = "vllm:num_requests_running 1\n"
	}
	if drops[drop{"waiting", faultAbsent}] != 1 || len(drops) != 1 {
		t.Errorf("counted %v, want waiting once: what a runner never showed is not counted", drops)
	}
}

// bombs are answers that never end, or that are more than they seem to be.
var bombs = map[string]struct {
	answer http.HandlerFunc
	want   []state
}{
	"compressed": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		row := append(bytes.Repeat([]byte("#"), 1<<13), '\n')
		for range 3 << 10 { // 24 MiB
			z.Write(row)
		}
		z.Close()
	}, []state{stateTooLarge, stateGarbled}},
	"endless rows": {func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			io.WriteString(w, "vllm:num_requests_running 1\n")
		}
	}, []state{stateTooLarge, stateGarbled}},
	"an endless row": {func(w http.ResponseWriter, r *http.Request) {
		for io.WriteString(w, "{\""); r.Context().Err() == nil; {
			io.WriteString(w, strings.Repeat("x", 4096))
		}
	}, []state{stateTooLarge}},
	"drops of bytes": {func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			io.WriteString(w, " ")
			w.(http.Flusher).Flush()
			select {
			case <-time.After(time.Millisecond):
			case <-r.Context().Done():
			}
		}
	}, []state{stateAway}},
	"no answer": {func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	}, []state{stateAway}},
	"broken off": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, "{")
	}, []state{stateAway}},
	"a large header": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 1<<20))
	}, []state{stateFailing, stateAway}},
	"redirects": {func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
	}, []state{stateAway}},
	"HTML": {func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "<!DOCTYPE html>\n<title>Sign in</title>\n")
	}, []state{stateGarbled}},
	"a large length in protobuf": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.google.protobuf; encoding=delimited; "+
			"proto=io.prometheus.client.MetricFamily")
		w.Write([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F})
	}, []state{stateGarbled}},
	"an error page": {func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		io.WriteString(w, "<html>")
	}, []state{stateFailing}},
	"not allowed": {func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}, []state{stateRefused}},
}

// afterBody reads the body of a request first: only then does the server notice that its client has
// gone.
func afterBody(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		answer(w, r)
	}
}

func TestPagesAreBoundedInBytesAndTime(t *testing.T) {
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(afterBody(bomb.answer))
			defer server.Close()
			m, _ := newMetrics(t, server.URL)
			m.client.CheckRedirect = stay
			defer m.client.CloseIdleConnections()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if slices.Contains(bomb.want, stateAway) {
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
			}
			samples, err := m.read(ctx)
			if !slices.Contains(bomb.want, stateOf(err)) || len(samples) > 0 {
				t.Errorf("state %q of %v, want one of %q; samples %v", stateOf(err), err, bomb.want,
					samples)
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestAnswersOfPrometheusAreBoundedInBytesAndTime(t *testing.T) {
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(afterBody(bomb.answer))
			defer server.Close()
			a := accessTo(t, server.URL, func(p *Prometheus) {
				if p.Timeout = 5 * time.Second; slices.Contains(bomb.want, stateAway) {
					p.Timeout = 100 * time.Millisecond
				}
			})
			defer a.close()
			if err := ask(t, a); !slices.Contains(bomb.want, stateOf(err)) {
				t.Errorf("state %q of %v, want one of %q", stateOf(err), err, bomb.want)
			} else if len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestHistogramsOfPrometheusThatCantBeTrueAreAbsent(t *testing.T) {
	for _, count := range []string{"NaN", "-1", "+Inf"} {
		cfg := DefaultConfig().Prometheus
		cfg.URL = fakePrometheus(t,
			[2]string{"timestamp(", `[{"metric":{"model_name":"a"},"value":[1,"1700000090"]}]`},
			[2]string{"llm_d_epp_request_ttft_seconds_bucket", fmt.Sprintf(
				`[{"metric":{"le":"1","model_name":"a"},"value":[1,%q]},%s]`, count,
				bucket("a", "+Inf", 3))})
		a := accessTo(t, cfg.URL, func(p *Prometheus) { *p = cfg })
		var drops []drop
		q := newPromQuery(cfg, a, slog.New(slog.DiscardHandler),
			func(d drop) { drops = append(drops, d) })
		samples, err := q.read(t.Context())
		if stateOf(err) != stateNoData || len(samples) > 0 || len(drops) != 1 ||
			drops[0].signal != "ttft" {
			t.Errorf("%s: got %v and %v, dropped %v", count, samples, err, drops)
		}
	}
}

// degraded returns the states of the gateway that a registry shows.
func degraded(t testing.TB, registry *prometheus.Registry) (states []string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "tidefill_reading_degraded" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "state" {
					states = append(states, l.GetValue())
				}
			}
		}
	}
	return states
}

func TestPrometheusThatIsAwayAtStartIsADegradedState(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	cfg := quick()
	cfg.Prometheus.URL = "http://" + address
	seen, registry := newCollector(), prometheus.NewRegistry()
	r, err := New(cfg, Deps{OnSample: seen.add, Registerer: registry,
		Logger: slog.New(slog.NewTextHandler(seen, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	await := func(what string, holds func() bool) {
		for !holds() && ctx.Err() == nil {
			select {
			case <-time.After(time.Millisecond): // the gauge follows the log
			case <-ctx.Done():
				t.Errorf("never: %s; states %v, log:\n%s", what, degraded(t, registry),
					seen.logged())
			}
		}
	}
	await("away", func() bool { return slices.Equal(degraded(t, registry), []string{"away"}) })
	if all := r.Degraded(); len(all) != 1 || all[0].State != "away" || all[0].Meaning == "" {
		t.Errorf("Degraded returns %+v", all)
	}
	if log := seen.logged(); strings.Count(log, "telemetry source failed") != 1 ||
		!strings.Contains(log, "level=WARN") || !strings.Contains(log, "state=away") {
		t.Errorf("logged:\n%s", log)
	}
	if listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		io.WriteString(w, emptyReply)
	}))
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	defer server.Close()
	await("no data", func() bool {
		return slices.Equal(degraded(t, registry), []string{"no_data"})
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
