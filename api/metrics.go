package api

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	uploaded prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidefill_http_requests_total",
			Help: "API requests answered, by route pattern, method and status; 499: the client " +
				"disconnected before its answer.",
		}, []string{"route", "method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tidefill_http_request_duration_seconds",
			Help: "Time from a request's header to the end of its answer, by route pattern.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30,
				60},
		}, []string{"route"}),
		uploaded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tidefill_uploaded_bytes_total",
			Help: "Bytes of files received, including refused uploads.",
		}),
	}
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.uploaded} {
		if err := registerer.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) observe(route, method string, code int, elapsed time.Duration) {
	m.requests.WithLabelValues(route, knownMethod(method), strconv.Itoa(code)).Inc()
	m.duration.WithLabelValues(route).Observe(elapsed.Seconds())
}

// knownMethod returns the method, or "other" for an unknown one, so that label values stay few.
func knownMethod(method string) string {
	switch method {
	case "GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS":
		return method
	}
	return "other"
}
