package webhook

import "github.com/prometheus/client_golang/prometheus"

// metrics holds the metrics of all endpoints.
type metrics struct {
	deliveries *prometheus.CounterVec
	pending    *prometheus.GaugeVec
}

// The results of attempts.
const (
	delivered  = "delivered"
	failedOnce = "failed"
	givenUp    = "given_up"
)

func newMetrics() *metrics {
	return &metrics{
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidefill_webhook_deliveries_total",
			Help: "Attempts to deliver an event to an endpoint of webhooks: delivered; failed, " +
				"to be tried again; given_up, after 24h or the answer 410.",
		}, []string{"endpoint", "result"}),
		pending: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidefill_webhook_pending_events",
			Help: "Events that wait for their delivery or its repetition. Absent where another " +
				"process delivers them.",
		}, []string{"endpoint"}),
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.deliveries, m.pending}
}

// start shows an endpoint before its first event, since rates need a zero to begin with.
func (m *metrics) start(endpoint string) {
	for _, result := range []string{delivered, failedOnce, givenUp} {
		m.deliveries.WithLabelValues(endpoint, result)
	}
}

// stands shows that this process does not deliver the endpoint's events.
func (m *metrics) stands(endpoint string) { m.pending.DeleteLabelValues(endpoint) }
