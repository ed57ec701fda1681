package telemetry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// engineQuery reads the engines behind a gateway from Prometheus: those that it knows now, which
// come and go.
type engineQuery struct {
	query   *promQuery
	label   string // that identifies the engine
	gateway Runner
	reader  *Reader
	engines map[string]*metrics // by the value of the label
}

// mostEngines limits how many engines of a gateway are read: a careless expression may match every
// series that Prometheus has.
const mostEngines = 256

func (q *engineQuery) read(ctx context.Context) (samples []Sample, err error) {
	pages, times, err := q.query.pages(ctx, q.label, q.gateway.Engines, q.reader.wanted,
		q.reader.signals)
	if err != nil {
		return nil, err
	}
	if len(times) == 0 {
		return nil, fmt.Errorf("query %s: no metrics of an engine have %s=~%q; check "+
			"upstreams[].engines: %w", q.query.cfg.URL, q.label, q.gateway.Engines, errNoData)
	}
	var faults []error
	for i, value := range slices.Sorted(maps.Keys(times)) {
		if i == mostEngines {
			faults = append(faults, fmt.Errorf("query %s: %d engines have %s=~%q, of which %d are "+
				"read; name fewer in upstreams[].engines: %w", q.query.cfg.URL, len(times), q.label,
				q.gateway.Engines, mostEngines, errTooLarge))
			break
		}
		m := q.engines[value]
		if m == nil {
			m = q.reader.metricsOf(Runner{Name: q.gateway.Name + "/" + value})
			q.engines[value] = m
		}
		of, err := m.sampleOf(ctx, q.label, value, pages[value], times[value])
		samples, faults = append(samples, of...), append(faults, err)
	}
	maps.DeleteFunc(q.engines, func(value string, _ *metrics) bool {
		_, still := times[value]
		return !still
	})
	return samples, errors.Join(faults...)
}

// enginesOfPrometheus returns the source of the engines behind a gateway that Prometheus knows.
func (r *Reader) enginesOfPrometheus(p *promQuery, gateway Runner) source {
	q := &engineQuery{query: p, label: r.cfg.Prometheus.Runners.Label, gateway: gateway, reader: r,
		engines: map[string]*metrics{}}
	return source{target: gateway.Name, kind: "engines", every: r.cfg.Prometheus.Every,
		timeout: 2 * r.cfg.Prometheus.Timeout, read: q.read}
}
