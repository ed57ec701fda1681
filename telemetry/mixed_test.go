package telemetry

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

func TestCountersThatJumpBackAndForth(t *testing.T) {
	for name, c := range map[string]struct {
		values []float64
		want   bool
	}{
		"one engine":                      {[]float64{1000, 1010, 1020, 1020, 1035}, false},
		"two engines in turn":             {[]float64{1000, 600, 1010, 610, 1020}, true},
		"the lower one first":             {[]float64{600, 1000, 605, 1010}, true},
		"one by one connection":           {[]float64{1000, 1001, 1002, 600, 601, 602, 1009}, true},
		"a restart":                       {[]float64{1000, 5, 10, 500, 990, 1005, 1020}, false},
		"a rank that is gone":             {[]float64{1000, 600, 610, 620, 800, 990, 1001}, false},
		"values that are absent":          {[]float64{1000, -1, 1010, -1, 1020}, false},
		"an engine that has just started": {[]float64{1000, 5, 1010, 6, 1020}, false},
	} {
		var m mixed
		var err error
		for i, v := range c.values {
			r := reading(flowcontrol.Metrics, func(r *flowcontrol.Reading) { r.OutputTokens = v })
			r.Sampled = time.Unix(int64(1000+i), 0)
			err = m.check(&r)
		}
		if (err != nil) != c.want {
			t.Errorf("%s: got %v, want mixed: %v", name, err, c.want)
		}
	}
}

// Two replicas of Prometheus answer under one URL. They have scraped the engine at different times.
func TestOlderReadingsAreNoOtherEngine(t *testing.T) {
	var m mixed
	for i, seconds := range []int64{7, 0, 7, 22, 15, 22} {
		r := reading(flowcontrol.Metrics, func(r *flowcontrol.Reading) {
			r.OutputTokens = []float64{1000, 990, 1010, 1020, 1015, 1030}[i]
		})
		r.Sampled = time.Unix(1000+seconds, 0)
		if err := m.check(&r); err != nil {
			t.Errorf("the reading of second %d: %v", seconds, err)
		}
	}
}

// A Service in front of two engines chooses one for each connection. That is noticed, the readings
// of both are not used, and the log says what to do.
func TestAServiceIsNotTakenForAnEngine(t *testing.T) {
	var engines [2]atomic.Int64
	engines[0].Store(100_000)
	engines[1].Store(40_000)
	var connections, requests atomic.Int64
	var chosen atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			n := engines[chosen.Load()].Add(10)
			fmt.Fprintf(w, "vllm:num_requests_running 3\nvllm:generation_tokens_total %d\n", n)
		}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			chosen.Store(connections.Add(1) % 2)
		}
	}
	server.Start()
	defer server.Close()
	cfg := quick()
	cfg.CapabilitiesEvery = 0
	seen := newCollector()
	seen.run(t, cfg, func() bool { return strings.Contains(seen.logged(), "mode: gateway") },
		Runner{Name: "r", Base: server.URL, Metrics: server.URL + "/metrics"})
	if n := connections.Load(); n < 3 {
		t.Errorf("%d connections for %d requests", n, requests.Load())
	}
}
