package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/flowcontrol"
)

// series counts the series of a metric with a label.
func series(t *testing.T, registry *prometheus.Registry, metric, label, value string) (n int) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == metric && l.GetName() == label && l.GetValue() == value {
					n++
				}
			}
		}
	}
	return n
}

// A target that a source shows no more is forgotten after a while, not one of a source that gives
// nothing.
func TestTargetsThatAreGoneAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		r, err := New(DefaultConfig(), Deps{Logger: slog.New(slog.DiscardHandler),
			Registerer: registry, OnSample: func(Sample) {}})
		if err != nil {
			t.Fatal(err)
		}
		var shown atomic.Pointer[[]string]
		ctx, stop := context.WithCancel(t.Context())
		s := source{target: "pool", kind: "engines", every: time.Second}
		s.read = func(context.Context) (samples []Sample, _ error) {
			for _, name := range *shown.Load() {
				of := flowcontrol.NoReading(flowcontrol.Metrics, time.Now())
				samples = append(samples, Sample{Runner: name, Reading: &of})
			}
			return samples, nil
		}
		both, ended := []string{"a", "b"}, make(chan struct{})
		shown.Store(&both)
		go func() {
			defer close(ended)
			r.poll(ctx, s)
		}()
		for _, test := range []struct {
			runners []string
			after   time.Duration
			a, b    int
		}{
			{both, 2 * time.Second, 1, 1},
			{[]string{"a"}, goneAfter - 5*time.Second, 1, 1},
			{[]string{"a"}, 10 * time.Second, 1, 0},
			{both, 2 * time.Second, 1, 1},
			{nil, 2 * goneAfter, 1, 1},
		} {
			shown.Store(&test.runners)
			time.Sleep(test.after)
			synctest.Wait()
			const metric = "tidefill_reading_timestamp_seconds"
			a := series(t, registry, metric, "target", "a")
			b := series(t, registry, metric, "target", "b")
			if a != test.a || b != test.b {
				t.Errorf("%v after %v: %d of a and %d of b, want %d and %d", test.runners,
					test.after, a, b, test.a, test.b)
			}
		}
		stop()
		<-ended
	})
}

func TestSignalsOfAnEngineThatIsGoneAreForgotten(t *testing.T) {
	var all http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all.ServeHTTP(w, r)
	}))
	defer server.Close()
	registry := prometheus.NewRegistry()
	cfg := DefaultConfig()
	cfg.Prometheus.URL, cfg.Prometheus.Runners.Label = server.URL, "pod"
	r, err := New(cfg, Deps{Logger: slog.New(slog.DiscardHandler), Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	s := r.enginesOfPrometheus(newPromQuery(cfg.Prometheus, r.access, r.log, nil),
		Runner{Name: "gw", Engines: "llama-3-70b-.*"})
	for _, engines := range []int{2, 1, 2} {
		all = manyEngines(engines, 1)
		if _, err := s.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, pod := range []string{"gw/llama-3-70b-decode-6f8b9c7d5-00000",
			"gw/llama-3-70b-decode-6f8b9c7d5-00001"} {
			n += series(t, registry, "tidefill_signal_resolved", "runner", pod)
		}
		if n != engines {
			t.Errorf("%d engines have signals, want %d", n, engines)
		}
	}
}

// Pods that replace each other leave no counts of values that were dropped.
func TestDropsOfWhatIsGoneAreForgotten(t *testing.T) {
	registry := prometheus.NewRegistry()
	cfg := DefaultConfig()
	cfg.Prometheus.URL, cfg.Prometheus.Runners.Label = "http://127.0.0.1:1", "pod"
	r, err := New(cfg, Deps{Logger: slog.New(slog.DiscardHandler), Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	p := newPromQuery(cfg.Prometheus, r.access, r.log, nil)
	engines := r.enginesOfPrometheus(p, Runner{Name: "gw", Engines: "pod-.*"})
	runners := &runnerQuery{reader: r, groups: newGroups(p, r)}
	for _, pod := range []string{"pod-0", "pod-1"} {
		of := func(name, value string) string {
			return `{"metric":{"__name__":"vllm:` + name + `","pod":"` + pod + `"},"value":[1,"` +
				value + `"]}`
		}
		one := `[{"metric":{"pod":"` + pod + `"},"value":[1,"1700000090"]}]`
		p.cfg.URL = fakePrometheus(t, [2]string{"count by", one}, [2]string{"timestamp(", one},
			[2]string{"{__name__=~", "[" + of("num_requests_running", "5") + "," +
				of("kv_cache_usage_perc", "NaN") + "]"})
		runners.follow([]Runner{{Name: pod}})
		for _, read := range []func(context.Context) ([]Sample, error){engines.read, runners.read} {
			if _, err := read(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, prefix := range []string{"", "gw/"} {
			for _, other := range []string{"pod-0", "pod-1"} {
				want := 0
				if other == pod {
					want = 1
				}
				if n := series(t, registry, "tidefill_reading_values_dropped_total", "target",
					prefix+other); n != want {
					t.Errorf("%d counts of %s, want %d", n, prefix+other, want)
				}
			}
		}
	}
}
