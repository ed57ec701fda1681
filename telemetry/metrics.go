package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
)

// metrics reads the metrics page of a runner.
type metrics struct {
	runner   Runner
	client   *http.Client
	signals  signalMap
	log      *slog.Logger
	onChange func(usedMetrics)
	known    *usedMetrics // by the last read; nil: none yet
}

func (m *metrics) read(ctx context.Context) ([]Sample, error) {
	header := m.runner.Header
	if !strings.HasPrefix(m.runner.Metrics, m.runner.Base+"/") {
		header = nil // the API key must not reach another server
	}
	body, response, taken, err := fetch(ctx, m.client, m.runner.Metrics, header,
		"text/plain;version=0.0.4")
	if err != nil {
		return nil, err
	}
	p, err := parsePage(body, response.Header)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", m.runner.Metrics, err)
	}
	r, found := m.signals.read(p, taken)
	m.logChange(ctx, found)
	if found.engine == "" {
		return nil, fmt.Errorf(
			"read %s: it has the metrics of no engine in the signal map (telemetry.signals): %w",
			m.runner.Metrics, errUnknownPage)
	}
	sample := Sample{Runner: m.runner.Name, Reading: &r}
	sample.TTFT, sample.TPOT = m.signals.latencies(p, found)
	return []Sample{sample}, nil
}

// logChange logs the metrics that signals are read from, and calls onChange, if they have changed
// since the last read.
func (m *metrics) logChange(ctx context.Context, found usedMetrics) {
	if m.known != nil && m.known.engine == found.engine && maps.Equal(m.known.names, found.names) {
		return
	}
	m.known = &found
	m.onChange(found)
	if found.engine == "" {
		return
	}
	attributes := []any{"runner", m.runner.Name, "engine", found.engine}
	var missing []string
	for _, s := range signals {
		if name := found.names[s.name]; name != "" {
			attributes = append(attributes, s.name, name)
		} else {
			missing = append(missing, s.name)
		}
	}
	for _, h := range histograms {
		if name := found.names[h.name]; name != "" {
			attributes = append(attributes, h.name, name)
		} else {
			missing = append(missing, h.name)
		}
	}
	if len(missing) > 0 {
		attributes = append(attributes, "missing", missing)
	}
	m.log.InfoContext(ctx, "reading a runner's metrics", attributes...)
}
