package httpserver

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts what a server refuses.
type metrics struct {
	refused *prometheus.CounterVec
	cut     *prometheus.CounterVec
}

// newMetrics registers the metrics; a nil registerer registers nothing.
func newMetrics(registerer prometheus.Registerer, connections *connections) (*metrics, error) {
	m := &metrics{
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidefill_http_refused_connections_total",
			Help: "Connections and HTTP/2 requests of the API that were refused, by the exceeded " +
				"limit of http: total, or address (of one client).",
		}, []string{"bound"}),
		cut: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidefill_http_slow_transfers_total",
			Help: "Transfers of the API that ended because the client was below the minimum " +
				"rate, by what was transferred: body or answer.",
		}, []string{"transfer"}),
	}
	if registerer == nil {
		return m, nil
	}
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tidefill_http_connections",
		Help: "Open connections of the API, and its HTTP/2 requests in progress.",
	}, func() float64 { return float64(connections.count()) })
	return m, errors.Join(registerer.Register(m.refused), registerer.Register(m.cut),
		registerer.Register(open))
}

func (m *metrics) refuse(full exceededLimit) { m.refused.WithLabelValues(string(full)).Inc() }

func (m *metrics) slow(transfer string) { m.cut.WithLabelValues(transfer).Inc() }
