package app

import (
	"context"
	"errors"
	"math"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/tidefill/tidefill/tracing"
)

// newRegistry returns a registry with the metrics of the Go runtime and of the process.
func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return r
}

func registerBuild(r prometheus.Registerer, version string) error {
	return r.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tidefill_build_info", Help: "1, with the version that runs as its label.",
		ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 }))
}

// spansLost describes the counter of spansCollector.
var spansLost = prometheus.NewDesc("tidefill_spans_lost_total", "Spans of traces that were not "+
	"exported, by cause: queue_full (OTEL_BSP_MAX_QUEUE_SIZE others waited), failed (the "+
	"collector did not take them).", []string{"cause"}, nil)

// spansCollector shows the spans that a tracer has lost; nil: traces are off.
type spansCollector struct{ *tracing.Tracer }

func (c spansCollector) Describe(to chan<- *prometheus.Desc) { to <- spansLost }

func (c spansCollector) Collect(to chan<- prometheus.Metric) {
	show := func(n uint64, cause string) {
		to <- prometheus.MustNewConstMetric(spansLost, prometheus.CounterValue, float64(n), cause)
	}
	lost := c.Lost()
	show(lost.QueueFull, "queue_full")
	show(lost.Failed, "failed")
}

// registerReady registers the gauge of the daemon's readiness.
func (a *App) registerReady() error {
	return a.options.Registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tidefill_ready",
		Help: "1 while the daemon takes requests and reaches its store; /readyz says why not.",
	}, func() float64 {
		if a.readiness().Ready {
			return 1
		}
		return 0
	}))
}

// registerSharing registers the gauges of what other processes publish and do.
func (a *App) registerSharing() error {
	err := a.options.Registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tidefill_batches_without_dispatcher",
		Help: "Batches that wait while no process with the role dispatch runs, as the store has " +
			"it; 0 while one runs; NaN: it is not known.",
	}, a.withoutDispatcher))
	if err != nil {
		return err
	}
	return a.options.Registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tidefill_snapshot_lag_seconds",
		Help: "Age of the newest state of pools that this process has of another one; NaN: none " +
			"leads pools. Without Redis, up to 7 s are normal.",
	}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), peersTimeout)
		defer cancel()
		newest := math.NaN()
		for _, p := range a.others(ctx) {
			if age := p.Age.Seconds(); !(age >= newest) { // also if newest is NaN
				newest = age
			}
		}
		return newest
	}))
}

// registerStore registers the gauges of the data directory and of the clock.
func (a *App) registerStore() error {
	return errors.Join(
		a.options.Registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tidefill_data_free_bytes",
			Help: "Free space of the data directory's file system; NaN: it is unknown.",
		}, func() float64 {
			free, err := a.store.FreeBytes()
			if err != nil {
				return math.NaN()
			}
			return float64(free)
		})),
		a.options.Registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tidefill_expiry_lag_seconds",
			Help: "How far the time by which files, uploads and batches expire is behind the " +
				"clock; above 0 while a jump of the clock is not confirmed.",
		}, func() float64 { return a.clock.Lag().Seconds() })))
}
