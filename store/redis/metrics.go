package redis

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are of one connection.
type metrics struct {
	up       prometheus.Gauge
	failures prometheus.Counter
	calls    prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		up: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tidefill_redis_up",
			Help: "1 while Redis is used; 0 while it is away and processes do without it."}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tidefill_redis_failures_total", Help: "Calls of Redis that failed."}),
		calls: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tidefill_redis_call_seconds", Help: "Time that calls of Redis took.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}}),
	}
	if r == nil {
		return m, nil
	}
	return m, errors.Join(r.Register(m.up), r.Register(m.failures), r.Register(m.calls))
}
