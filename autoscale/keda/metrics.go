package keda

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of the server.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	streams  prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer, asking *objects) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidefill_scaler_requests_total",
			Help: "Calls of KEDA that have ended, by method and gRPC code."},
			[]string{"method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tidefill_scaler_request_seconds",
			Help:    "Time of KEDA's calls, without streams, by method.",
			Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, 1}}, []string{"method"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tidefill_scaler_streams",
			Help: "Streams of KEDA that are open."}),
	}
	objects := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tidefill_scaler_scaledobjects",
		Help: "ScaledObjects that have asked lately."},
		func() float64 { return float64(asking.count()) })
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.streams, objects} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}
