package live

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// gateway exports what a gateway in front of the pool counts of interactive requests, under the
// names of llm-d's endpoint picker. Batch lines do not pass it.
type gateway struct {
	objective scenario.SLO
	address   string
	server    *http.Server

	mu     sync.Mutex
	meters meters
	page   []byte // answered instead of the present one; nil: none
}

type meters struct {
	registry                     *prometheus.Registry
	ttft, tpot, prompts, answers prometheus.Histogram
}

// Bounds of the endpoint picker's histograms, in seconds.
var (
	ttftBounds = []float64{.005, .025, .05, .1, .2, .4, .6, .8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10,
		15, 20, 30, 45, 60, 120}
	tpotBounds = []float64{.0005, .00205, .005, .01, .02, .04, .06, .08, .1, .125, .15, .2, .3, .4,
		.5, .6, .8, 1, 1.5, 2, 3, 4.5, 6, 12}
)

func startGateway(objective scenario.SLO) (*gateway, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &gateway{objective: objective, address: listener.Addr().String()}
	g.reset()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", g.serve)
	g.server = &http.Server{Handler: mux}
	go g.server.Serve(listener)
	return g, nil
}

func (g *gateway) stop() { g.server.Shutdown(context.Background()) }

// reset starts all counters from 0, as a restart does.
func (g *gateway) reset() {
	histogram := func(name string, bounds []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "llm_d_epp_request_" + name, Help: "See llm-d.", Buckets: bounds,
			ConstLabels: prometheus.Labels{"model_name": servedModel, "priority": "0"},
		})
	}
	m := meters{registry: prometheus.NewRegistry(),
		ttft:    histogram("ttft_seconds", withBound(ttftBounds, g.objective.TTFT)),
		tpot:    histogram("streaming_tpot_seconds", withBound(tpotBounds, g.objective.TPOT)),
		prompts: histogram("input_tokens", prometheus.ExponentialBuckets(1, 2, 18)),
		answers: histogram("output_tokens", prometheus.ExponentialBuckets(1, 2, 14)),
	}
	m.registry.MustRegister(m.ttft, m.tpot, m.prompts, m.answers)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.meters = m
}

// withBound adds the objective, as operators do.
func withBound(bounds []float64, objective time.Duration) []float64 {
	at, found := slices.BinarySearch(bounds, objective.Seconds())
	if found || objective == 0 {
		return bounds
	}
	return slices.Insert(slices.Clone(bounds), at, objective.Seconds())
}

// observeFirst counts a first token when it comes, as endpoint pickers do.
func (g *gateway) observeFirst(ttft time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.meters.ttft.Observe(ttft.Seconds())
}

// observeEnd counts an answer when it ends.
func (g *gateway) observeEnd(a answered) {
	if a.err != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if a.tpot > 0 {
		g.meters.tpot.Observe(a.tpot.Seconds())
	}
	g.meters.prompts.Observe(float64(a.Input))
	g.meters.answers.Observe(float64(a.Output))
}

// freeze answers with the present page until thaw.
func (g *gateway) freeze() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.page = g.render()
}

func (g *gateway) thaw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.page = nil
}

func (g *gateway) render() []byte {
	r := httptest.NewRecorder()
	promhttp.HandlerFor(g.meters.registry, promhttp.HandlerOpts{DisableCompression: true}).
		ServeHTTP(r, httptest.NewRequest("GET", "/metrics", nil))
	return r.Body.Bytes()
}

func (g *gateway) serve(w http.ResponseWriter, _ *http.Request) {
	g.mu.Lock()
	text := g.page
	if text == nil {
		text = g.render()
	}
	g.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.Write(text)
}
