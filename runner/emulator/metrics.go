package emulator

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/simulator/engine"
)

// metrics are those of an engine, and some of the emulator's own about its interactive traffic.
// Times are real, as a client of the runner sees them.
type metrics struct {
	registry *prometheus.Registry
	exporter exporter

	interactiveFirstToken prometheus.Histogram
	interactivePerToken   prometheus.Histogram
	interactiveShed       prometheus.Counter
	served                func(Served) // Config.Served
}

func newMetrics(c Config) *metrics {
	r := prometheus.NewRegistry()
	own := meters{r, "emulator_interactive_", prometheus.Labels{"model_name": c.Models[0],
		"engine": "0"}}
	m := &metrics{
		registry: r, exporter: exporters[c.Engine](c, r), served: c.Served,
		interactiveFirstToken: own.histogram("time_to_first_token_seconds",
			"Time to first token of the emulator's own interactive requests.", firstTokenBuckets),
		interactivePerToken: own.histogram("time_per_output_token_seconds",
			"Mean time per output token of the emulator's own interactive requests.",
			tokenGapBuckets),
		interactiveShed: prometheus.NewCounter(prometheus.CounterOpts{
			Name:        own.prefix + "shed_total",
			Help:        "The emulator's own interactive requests that found the queue full.",
			ConstLabels: own.labels,
		}),
	}
	r.MustRegister(m.interactiveShed)
	return m
}

// produced counts a token of a sequence. t.lastToken is when the token before it came.
func (m *metrics) produced(t *ticket, at time.Time, c clock) {
	m.exporter.produced(t, at, c)
	if t.interactive && t.tokens == 1 {
		m.interactiveFirstToken.Observe(
			c.real(at.Sub(t.submitted) + engine.ServerDelay(1)).Seconds())
	}
}

// finished counts a sequence that got all its tokens.
func (m *metrics) finished(t *ticket, c clock) {
	m.exporter.finished(t, c)
	if !t.interactive {
		return
	}
	s := Served{FirstToken: c.real(t.firstToken.Sub(t.submitted) + engine.ServerDelay(1))}
	if t.tokens > 1 {
		s.PerToken = c.real(t.perToken())
		m.interactivePerToken.Observe(s.PerToken.Seconds())
	}
	if m.served != nil {
		m.served(s)
	}
}
