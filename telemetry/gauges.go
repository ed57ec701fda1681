package telemetry

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"
)

// gauges holds the Reader's own metrics.
type gauges struct {
	timestamp *prometheus.GaugeVec
	failures  *prometheus.CounterVec
	signals   *prometheus.GaugeVec
}

func newGauges(registerer prometheus.Registerer) *gauges {
	g := &gauges{
		timestamp: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidefill_reading_timestamp_seconds",
			Help: "Time of the last reading, as its source reports it.",
		}, []string{"target", "source"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidefill_reading_failures_total",
			Help: "Requests to a source that returned no reading.",
		}, []string{"target", "source"}),
		signals: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidefill_signal_resolved",
			Help: "1 for each signal of a runner, with the engine metric it is read from.",
		}, []string{"runner", "signal", "metric"}),
	}
	if registerer != nil {
		registerer.MustRegister(g.timestamp, g.failures, g.signals)
	}
	return g
}

func (g *gauges) sampled(s source, sample Sample) {
	target := cmp.Or(sample.Runner, sample.Model, s.target)
	g.timestamp.WithLabelValues(target, s.kind).Set(
		float64(sample.Reading.Sampled.UnixMilli()) / 1000)
}

func (g *gauges) failed(s source) { g.failures.WithLabelValues(s.target, s.kind).Inc() }

// setUsed publishes the metrics that a runner's signals are read from.
func (g *gauges) setUsed(runner string, found usedMetrics) {
	g.signals.DeletePartialMatch(prometheus.Labels{"runner": runner})
	for signal, metric := range found.names {
		if metric != "" {
			g.signals.WithLabelValues(runner, signal, metric).Set(1)
		}
	}
}
