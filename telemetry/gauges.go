package telemetry

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/internal/collectors"
)

// gauges holds the Reader's own metrics.
type gauges struct {
	timestamp *prometheus.GaugeVec
	failures  *prometheus.CounterVec
	dropped   *prometheus.CounterVec
	degraded  *prometheus.GaugeVec
	signals   *prometheus.GaugeVec
}

func newGauges(registerer prometheus.Registerer) *gauges {
	return &gauges{
		timestamp: collectors.Once(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidefill_reading_timestamp_seconds",
			Help: "Time of the last reading of a runner or a model's gateway, as its source " +
				"(metrics, capabilities, gateway) reports it; its age is time() minus this.",
		}, []string{"target", "source"})),
		failures: collectors.Once(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidefill_reading_failures_total",
			Help: "Requests to a source of readings that returned none; the log has the error.",
		}, []string{"target", "source"})),
		dropped: collectors.Once(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidefill_reading_values_dropped_total",
			Help: "Values of readings that were not used, by signal and reason: not_finite; " +
				"negative; incomplete, a histogram without all buckets; absent, though shown " +
				"before.",
		}, []string{"target", "signal", "reason"})),
		degraded: collectors.Once(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidefill_reading_degraded",
			Help: "1 while a source gives no usable reading, by its state: away, refused (401 " +
				"or 403), no_page, too_large, garbled, failing (another status), no_data " +
				"(Prometheus has no such series), mixed (several engines answer in turn), " +
				"starting (capabilities are answered with 503), frozen (it shows requests, but " +
				"nothing moves).",
		}, []string{"target", "source", "state"})),
		signals: collectors.Once(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidefill_signal_resolved",
			Help: "1 for each signal that flow control reads of a runner, with the engine's " +
				"metric that it is read from.",
		}, []string{"runner", "signal", "metric"})),
	}
}

// reset forgets what an earlier Reader has published about the present state.
func (g *gauges) reset() {
	g.timestamp.Reset()
	g.degraded.Reset()
	g.signals.Reset()
}

// sampled publishes the time of a sample. It returns the target that the sample is about.
func (g *gauges) sampled(s source, sample Sample) (target string) {
	target = cmp.Or(sample.Runner, sample.Model, s.target)
	g.timestamp.WithLabelValues(target, s.kind).Set(
		float64(sample.Reading.Sampled.UnixMilli()) / 1000)
	return target
}

// forget removes what is published of a target that a source of a kind has shown.
func (g *gauges) forget(target, kind string) {
	g.timestamp.DeleteLabelValues(target, kind)
	g.forgetDrops(target)
	if kind != "capabilities" {
		g.signals.DeletePartialMatch(prometheus.Labels{"runner": target})
	}
}

func (g *gauges) failed(s source) { g.failures.WithLabelValues(s.target, s.kind).Inc() }

// drop counts values of a target that were not used.
func (g *gauges) drop(target string) func(drop) {
	return func(d drop) {
		g.dropped.WithLabelValues(target, d.signal, string(d.reason)).Inc()
	}
}

// forgetDrops removes the counts of values of a target: pods that replace each other have names of
// their own, and would add up without end.
func (g *gauges) forgetDrops(target string) {
	g.dropped.DeletePartialMatch(prometheus.Labels{"target": target})
}

// setState publishes the state of a source; empty: it is not degraded.
func (g *gauges) setState(s source, now state) {
	g.degraded.DeletePartialMatch(prometheus.Labels{"target": s.target, "source": s.kind})
	if now != "" {
		g.degraded.WithLabelValues(s.target, s.kind, string(now)).Set(1)
	}
}

// setUsed publishes the metrics that a runner's signals are read from.
func (g *gauges) setUsed(runner string, found usedMetrics) {
	g.signals.DeletePartialMatch(prometheus.Labels{"runner": runner})
	for signal, metric := range found.names {
		if metric != "" {
			g.signals.WithLabelValues(runner, signal, metric).Set(1)
		}
	}
}
