package httpserver

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts what a server refuses. A nil Registerer shows it nowhere.
type metrics struct {
	refused *prometheus.CounterVec
	cut     *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer, connections *connections) (*metrics, error) {
	m := &metrics{
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidefill_http_refused_connections_total",
			Help: "Connections and HTTP/2 requests refused, by the bound that they met: total or address.",
		}, []string{"bound"}),
		cut: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidefill_http_slow_transfers_total",
			Help: "Bodies and answers given up because the client stayed below the minimum rate.",
		}, []string{"transfer"}),
	}
	if registerer == nil {
		return m, nil
	}
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tidefill_http_connections",
		Help: "Open connections of the API, and its HTTP/2 requests under way.",
	}, func() float64 { return float64(connections.count()) })
	return m, errors.Join(registerer.Register(m.refused), registerer.Register(m.cut),
		registerer.Register(open))
}

func (m *metrics) refuse(full verdict) { m.refused.WithLabelValues(string(full)).Inc() }

func (m *metrics) slow(transfer string) { m.cut.WithLabelValues(transfer).Inc() }
