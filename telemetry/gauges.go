package telemetry

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"
)

// gauges are what the probe tells Prometheus about itself.
type gauges struct {
	sampled  *prometheus.GaugeVec
	failures *prometheus.CounterVec
	signals  *prometheus.GaugeVec
}

func newGauges(registerer prometheus.Registerer) *gauges {
	g := &gauges{
		sampled: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidefill_reading_timestamp_seconds",
			Help: "When the last reading was true, by its source's own word.",
		}, []string{"of", "source"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidefill_reading_failures_total", Help: "Looks that showed nothing.",
		}, []string{"of", "source"}),
		signals: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidefill_signal_resolved",
			Help: "1 for the metric of its engine under which a runner's signal is read.",
		}, []string{"runner", "signal", "metric"}),
	}
	if registerer != nil {
		registerer.MustRegister(g.sampled, g.failures, g.signals)
	}
	return g
}

func (g *gauges) saw(s source, l Look) {
	of := cmp.Or(l.Runner, l.Model, s.of)
	g.sampled.WithLabelValues(of, s.kind).Set(float64(l.Reading.Sampled.UnixMilli()) / 1000)
}

func (g *gauges) failed(s source) { g.failures.WithLabelValues(s.of, s.kind).Inc() }

// resolved shows where a runner's signals are read now.
func (g *gauges) resolved(runner string, found resolved) {
	g.signals.DeletePartialMatch(prometheus.Labels{"runner": runner})
	for signal, metric := range found.names {
		if metric != "" {
			g.signals.WithLabelValues(runner, signal, metric).Set(1)
		}
	}
}
