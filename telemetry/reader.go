package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Runner is a model server whose state is read.
type Runner struct {
	Name string // as flow control knows it
	Base string // its URL, without /v1; empty: only its metrics are read
	// Metrics is the URL of its metrics page. Empty: it has none.
	Metrics string
	// Engines is a regular expression, for a gateway whose engines Prometheus knows: each value of
	// the label telemetry.prometheus.runners.label that it matches as a whole is an engine, and its
	// samples are about a runner that has the name of the gateway, a slash and the value. Empty: it
	// is a runner itself.
	Engines string
	// Header is sent with every request to Base, for instance the runner's API key. It is not sent
	// to a metrics page on another server.
	Header http.Header
}

// Sample is what one request to a source returned. It is about a runner, or, if Runner is empty,
// about the gateway of all pools that serve Model. If Model is empty too, it is about all pools.
type Sample struct {
	Runner, Model string
	Reading       *flowcontrol.Reading
	// TTFT and TPOT are the latency histograms of the source, in seconds. Those of a gateway count
	// interactive requests, those of an engine count all requests. Nil: the source has none. They
	// are for recordings; no policy uses them.
	TTFT, TPOT []flowcontrol.Bucket
	// State is what the runner says of itself. Nil: the source does not show it.
	State *State
}

// State is what a runner says of itself by GET /v1/capabilities. NaN: it does not say.
type State struct {
	Starting        bool // or stopping: it has answered before, and answers 503 now
	Unhealthy       bool
	Queue, MaxQueue float64 // waiting requests, and as many as it takes
	KVUsed          float64
	NotLoaded       []string // models that it knows and has not loaded
}

// Deps are what a Reader works with.
type Deps struct {
	Runners []Runner
	// SLO sets the time above which an interactive request is late.
	SLO flowcontrol.SLO
	// OnSample receives every sample. Several goroutines call it; it must not block.
	OnSample func(Sample)
	Logger   *slog.Logger
	// Registerer registers the Reader's own metrics. Nil: it has none.
	Registerer prometheus.Registerer
}

// Reader reads the sources of a configuration at regular intervals.
type Reader struct {
	cfg     Config
	deps    Deps
	log     *slog.Logger
	gauges  *gauges
	signals signalMap
	wanted  map[string]bool // names of the metrics that signals are read from
	access  *access         // to Prometheus; nil: none is configured

	degraded degradations
}

// New builds a Reader; Run starts it. It returns an error if the signal map, a secret or a
// certificate cannot be read.
func New(cfg Config, deps Deps) (*Reader, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	m, err := loadSignals(cfg.Signals)
	if err != nil {
		return nil, fmt.Errorf("telemetry.signals: %w", err)
	}
	r := &Reader{cfg: cfg, deps: deps, log: deps.Logger.With("component", "telemetry"),
		gauges: newGauges(deps.Registerer), signals: m, wanted: m.metrics()}
	if cfg.Prometheus.URL != "" {
		if r.access, err = newAccess(cfg.Prometheus); err != nil {
			return nil, fmt.Errorf("telemetry.prometheus.%w", err)
		}
		if cfg.Prometheus.TLS.InsecureSkipVerify {
			r.log.Warn("the certificate of Prometheus is not verified, so another server can get "+
				"the credentials; remove telemetry.prometheus.tls.insecure_skip_verify",
				"prometheus", cfg.Prometheus.URL)
		}
	}
	return r, nil
}

// Run reads all sources until ctx is done. Readers with the same Registerer share their metrics; at
// most one of them runs at a time.
func (r *Reader) Run(ctx context.Context) error {
	defer r.gauges.reset()
	client := &http.Client{Transport: newTransport(), CheckRedirect: stay}
	defer client.CloseIdleConnections()
	var polling sync.WaitGroup
	defer polling.Wait()
	start := func(s source) {
		if s.every > 0 {
			polling.Go(func() { r.poll(ctx, s) })
		}
	}
	for _, to := range r.deps.Runners {
		if to.Metrics != "" {
			m := r.metricsOf(to)
			m.client = client
			start(source{target: to.Name, kind: "metrics", every: r.cfg.Every,
				timeout: r.cfg.Timeout, read: m.read})
		}
		if to.Base == "" {
			continue
		}
		c := &capabilities{runner: to, client: client, onDrop: r.gauges.drop(to.Name)}
		start(source{target: to.Name, kind: "capabilities", every: r.cfg.CapabilitiesEvery,
			timeout: r.cfg.Timeout, read: c.read})
	}
	if r.access != nil {
		defer r.access.close()
		p := &promQuery{cfg: r.cfg.Prometheus, slo: r.deps.SLO, access: r.access, log: r.log,
			chosen: map[string]string{}, onDrop: r.gauges.drop("prometheus")}
		if len(r.cfg.Prometheus.TTFT)+len(r.cfg.Prometheus.TPOT) > 0 {
			start(source{target: "prometheus", kind: "gateway", every: r.cfg.Prometheus.Every,
				timeout: 8 * r.cfg.Prometheus.Timeout, read: p.read})
		}
		if s, any := r.runnersOfPrometheus(p); any {
			start(s)
		}
		for _, s := range r.enginesOfPrometheus(p) {
			start(s)
		}
	}
	<-ctx.Done()
	return nil
}

// metricsOf returns the reader of a runner's metrics, without a client.
func (r *Reader) metricsOf(to Runner) *metrics {
	return &metrics{runner: to, signals: r.signals, wanted: r.wanted, log: r.log,
		shown: map[string]bool{}, frozen: frozen{after: r.cfg.FrozenAfter},
		onChange: func(found usedMetrics) { r.gauges.setUsed(to.Name, found) },
		onDrop:   r.gauges.drop(to.Name)}
}
