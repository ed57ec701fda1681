package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/runner"
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
	// Cluster reports that the reading is from the metrics APIs of Kubernetes, which are older and
	// say less than the runner's own page.
	Cluster bool
	// State is what the runner says of itself. Nil: the source does not show it.
	State *runner.State
}

// Source is something else that samples are read from.
type Source struct {
	Target, Kind string        // labels of the Reader's own metrics
	Every        time.Duration // the interval
	Timeout      time.Duration // of one read
	Read         func(context.Context) ([]Sample, error)
}

// Deps are what a Reader works with.
type Deps struct {
	Runners []Runner // at first; see Reader.Follow
	// Sources are read besides what the configuration names.
	Sources []Source
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

	changed chan struct{} // capacity 1: the runners are others
	mu      sync.Mutex
	runners []Runner
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
		gauges: newGauges(deps.Registerer), signals: m, wanted: m.metrics(),
		changed: make(chan struct{}, 1), runners: deps.Runners}
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

// Follow replaces the runners that are read. Those that stay are read without a gap, with what is
// known of them; Run stops reading those that are gone and starts with those that are new.
func (r *Reader) Follow(runners []Runner) {
	r.mu.Lock()
	r.runners = runners
	r.mu.Unlock()
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// Run reads all sources until ctx is done. Readers with the same Registerer share their metrics; at
// most one of them runs at a time.
func (r *Reader) Run(ctx context.Context) error {
	defer r.gauges.reset()
	client := &http.Client{Transport: newTransport(), CheckRedirect: stay}
	defer client.CloseIdleConnections()
	f := &following{reader: r, client: client}
	defer f.stop()
	for _, s := range r.deps.Sources {
		f.common.start(ctx, r, source{target: s.Target, kind: s.Kind, every: s.Every,
			timeout: s.Timeout, read: s.Read})
	}
	if r.access != nil {
		defer r.access.close()
		f.startPrometheus(ctx)
	}
	for {
		r.mu.Lock()
		runners := r.runners
		r.mu.Unlock()
		f.follow(ctx, runners)
		select {
		case <-ctx.Done():
			return nil
		case <-r.changed:
		}
	}
}

// metricsOf returns the reader of a runner's metrics, without a client.
func (r *Reader) metricsOf(to Runner) *metrics {
	return &metrics{runner: to, signals: r.signals, wanted: r.wanted, log: r.log,
		shown: map[string]bool{}, frozen: frozen{after: frozenAfter},
		onChange: func(found usedMetrics) { r.gauges.setUsed(to.Name, found) },
		onDrop:   r.gauges.drop(to.Name)}
}
