package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Runner is a model server to look at.
type Runner struct {
	Name string // as flow control knows it
	Base string // its URL, without /v1
	// Metrics is the URL of its metrics page; empty: it has none.
	Metrics string
	// Header goes along with every request to Base, such as the runner's key. A metrics page
	// elsewhere is asked without.
	Header http.Header
}

// Look is what one look showed: at a runner or, where Runner is empty, at the gateway before the
// pools of a model; before all pools, where Model is empty too.
type Look struct {
	Runner, Model string
	Reading       *flowcontrol.Reading
	// TTFT and TPOT are the histograms that the look saw, in seconds: the gateway's are of
	// interactive requests, an engine's of all. Nil: none. No policy sees them; they are for
	// recordings.
	TTFT, TPOT []flowcontrol.Bucket
}

// Deps is what a probe works with.
type Deps struct {
	Runners []Runner
	// SLO says above which time an interactive request is late.
	SLO flowcontrol.SLO
	// Tell takes each look. It is called by several goroutines and must not block.
	Tell   func(Look)
	Logger *slog.Logger
	// Registerer takes the metrics; nil: none are kept.
	Registerer prometheus.Registerer
}

// Probe looks at the world again and again.
type Probe struct {
	cfg     Config
	deps    Deps
	log     *slog.Logger
	gauges  *gauges
	signals signalMap
	token   string // of Prometheus
}

// New builds a probe; Run starts it. It fails on a signal map that can't be read.
func New(cfg Config, deps Deps) (*Probe, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("readings: %w", err)
	}
	m, err := loadSignals(cfg.Signals)
	if err != nil {
		return nil, fmt.Errorf("readings.signals: %w", err)
	}
	p := &Probe{cfg: cfg, deps: deps, log: deps.Logger.With("component", "probe"),
		gauges: newGauges(deps.Registerer), signals: m}
	if env := cfg.Prometheus.TokenEnv; env != "" && cfg.Prometheus.URL != "" {
		if p.token = os.Getenv(env); p.token == "" {
			return nil, fmt.Errorf(
				"readings.prometheus: the environment variable %s, named by token_env, is empty",
				env)
		}
	}
	return p, nil
}

// Run looks until ctx is done.
func (p *Probe) Run(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 2, IdleConnTimeout: 90 * time.Second,
		ForceAttemptHTTP2: true,
	}}
	defer client.CloseIdleConnections()
	var watching sync.WaitGroup
	defer watching.Wait()
	watch := func(s source) {
		if s.every > 0 {
			watching.Go(func() { p.watch(ctx, s) })
		}
	}
	for _, r := range p.deps.Runners {
		if r.Metrics != "" {
			m := &metrics{runner: r, client: client, signals: p.signals, log: p.log,
				resolve: func(found resolved) { p.gauges.resolved(r.Name, found) }}
			watch(source{of: r.Name, kind: "metrics", every: p.cfg.Every, timeout: p.cfg.Timeout,
				look: m.look})
		}
		c := &capabilities{runner: r, client: client}
		watch(source{of: r.Name, kind: "capabilities", every: p.cfg.CapabilitiesEvery,
			timeout: p.cfg.Timeout, look: c.look})
	}
	if p.cfg.Prometheus.URL != "" {
		header := http.Header{}
		if p.token != "" {
			header.Set("Authorization", "Bearer "+p.token)
		}
		g := &gateway{cfg: p.cfg.Prometheus, slo: p.deps.SLO, client: client, header: header,
			log: p.log, chosen: map[string]string{}}
		watch(source{of: "prometheus", kind: "gateway", every: p.cfg.Prometheus.Every,
			timeout: 4 * p.cfg.Prometheus.Timeout, look: g.look})
	}
	<-ctx.Done()
	return nil
}

// source is something to look at.
type source struct {
	of, kind string // labels of metrics
	every    time.Duration
	timeout  time.Duration // of one look
	look     func(context.Context) ([]Look, error)
}

// A source that fails is looked at less and less often, down to every longestPause; one that lacks
// the page, every unknownPause: it may have it after an upgrade.
const (
	longestPause = 5 * time.Second
	unknownPause = time.Minute
)

// watch looks at one source until ctx is done. It tells the log when the source falls silent and
// when it speaks again.
func (p *Probe) watch(ctx context.Context, s source) {
	silent := ""
	pause := s.every
	wait := time.Duration(rand.Float64() * p.cfg.Jitter * float64(s.every))
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		looking, cancel := context.WithTimeout(ctx, s.timeout)
		looks, err := s.look(looking)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if silent != "" {
				p.log.InfoContext(ctx, "a source of readings speaks again", "of", s.of,
					"source", s.kind)
			}
			silent, pause = "", s.every
		default:
			p.gauges.failed(s)
			p.logSilence(ctx, s, err, &silent)
			pause = min(2*pause, max(longestPause, s.every))
			if errors.Is(err, errUnknownPage) {
				pause = max(unknownPause, s.every)
			}
		}
		for _, l := range looks {
			p.gauges.saw(s, l)
			p.deps.Tell(l)
		}
		wait = time.Duration(float64(pause) * (1 + p.cfg.Jitter*(rand.Float64()-0.5)))
	}
}

// logSilence tells why a source is silent, once for each reason. Nobody needs capabilities, so
// their absence is no news.
func (p *Probe) logSilence(ctx context.Context, s source, err error, told *string) {
	level, reason := slog.LevelWarn, "no answer"
	if errors.Is(err, errUnknownPage) {
		reason = "no page"
		if s.kind == "capabilities" {
			level = slog.LevelDebug
		}
	}
	if reason != *told {
		*told = reason
		p.log.Log(ctx, level, "a source of readings is silent, asking again", "of", s.of,
			"source", s.kind, "error", err)
	}
}
