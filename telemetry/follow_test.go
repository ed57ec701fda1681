package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// tokenPage is a runner's metrics page whose counter grows by 10 with each answer.
type tokenPage struct {
	mu    sync.Mutex
	reads []time.Time
	jumps bool // two engines answer in turn
}

func (c *tokenPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		http.NotFound(w, r)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads = append(c.reads, time.Now())
	tokens := 1000 + 10*len(c.reads)
	if c.jumps && len(c.reads)%2 == 0 {
		tokens = 500
	}
	fmt.Fprintf(w, "vllm:num_requests_running 1\nvllm:generation_tokens_total %d\n", tokens)
}

func (c *tokenPage) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.reads)
}

// A runner that comes or goes does not disturb the reading of the others: they are read without a
// gap, and what is known of them is kept.
func TestOtherRunnersAreReadWithoutAGap(t *testing.T) {
	const every = 20 * time.Millisecond
	steady, mixed, guest := &tokenPage{}, &tokenPage{jumps: true}, &tokenPage{}
	runner := func(name string, page http.Handler) Runner {
		server := httptest.NewServer(page)
		t.Cleanup(server.Close)
		return Runner{Name: name, Base: server.URL, Metrics: server.URL + "/metrics"}
	}
	a, m, b := runner("a", steady), runner("m", mixed), runner("b", guest)
	var mu sync.Mutex
	samples := map[string]int{}
	registry := prometheus.NewRegistry()
	var log strings.Builder // of the reader alone, which locks it
	cfg := DefaultConfig()
	cfg.Every, cfg.Jitter = every, 0
	r, err := New(cfg, Deps{Runners: []Runner{a, m}, Registerer: registry,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		OnSample: func(s Sample) {
			mu.Lock()
			defer mu.Unlock()
			samples[s.Runner]++
		}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	await := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(every / 4) {
			if time.Now().After(deadline) {
				t.Fatalf("timeout: %s", what)
			}
		}
	}
	of := func(name string) int {
		mu.Lock()
		defer mu.Unlock()
		return samples[name]
	}
	shown := func(target string) bool {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != "tidefill_reading_timestamp_seconds" {
				continue
			}
			for _, x := range f.GetMetric() {
				for _, l := range x.GetLabel() {
					if l.GetName() == "target" && l.GetValue() == target {
						return true
					}
				}
			}
		}
		return false
	}
	isMixed := func() bool {
		all := r.Degraded()
		return len(all) == 1 && all[0].Target == "m" && all[0].State == "mixed"
	}
	await("a page is known to be mixed", func() bool { return isMixed() && of("a") > 5 })
	used := of("m")
	for range 5 {
		r.Follow([]Runner{a, m, b})
		before := of("b")
		await("a runner that came is read", func() bool { return of("b") > before+2 && shown("b") })
		r.Follow([]Runner{m, a})
		await("a runner that went is forgotten", func() bool { return !shown("b") })
		if !shown("a") || !isMixed() {
			t.Errorf("a is shown: %v, degraded %+v", shown("a"), r.Degraded())
		}
	}
	gone := guest.count()
	before := steady.count()
	await("the runner is read on", func() bool { return steady.count() > before+5 })
	if n := guest.count(); n > gone+1 {
		t.Errorf("the runner that went was read %d times more", n-gone)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if n := of("m"); n != used {
		t.Errorf("%d readings of a page were used that is known to be mixed", n-used)
	}
	if n := strings.Count(log.String(), `msg="reading a runner's metrics" component=telemetry `+
		`runner=a `); n != 1 {
		t.Errorf("the reading of a began %d times:\n%s", n, log.String())
	}
	for i := 1; i < len(steady.reads); i++ {
		if gap := steady.reads[i].Sub(steady.reads[i-1]); gap < every/2 {
			t.Errorf("a was read again after %v: its reading was restarted", gap)
		}
	}
}
