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
	groups  groups
	gateway Runner
	reader  *Reader
	engines map[string]*metrics // by the value of the label
}

// maxEngines is the greatest number of engines of a gateway that are read: a careless expression
// may match every series that Prometheus has.
const maxEngines = 256

func (q *engineQuery) read(ctx context.Context) (samples []Sample, err error) {
	url, label, expression := q.groups.query.cfg.URL, q.groups.label, q.gateway.Engines
	values, err := q.groups.list(ctx, expression)
	if err != nil {
		return nil, err
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("query %s: no metrics of an engine have %s=~%q; check "+
			"upstreams[].engines: %w", url, label, expression, errNoData)
	}
	var faults []error
	if len(values) > maxEngines {
		faults = append(faults, fmt.Errorf("query %s: %d engines have %s=~%q, of which %d are "+
			"read; name fewer in upstreams[].engines: %w", url, len(values), label, expression,
			maxEngines, errTooLarge))
		values = values[:maxEngines]
	}
	err = q.groups.read(ctx, values, func(first, last int, of pages) {
		for _, value := range values[first:last] {
			at, known := of.times[value]
			if !known { // gone since it was listed
				continue
			}
			m := q.engines[value]
			if m == nil {
				m = q.reader.metricsOf(Runner{Name: q.gateway.Name + "/" + value})
				q.engines[value] = m
			}
			got, err := m.sampleOf(ctx, label, value, of.pages[value], at)
			samples, faults = append(samples, got...), append(faults, err)
		}
	})
	maps.DeleteFunc(q.engines, func(value string, m *metrics) bool {
		gone := !slices.Contains(values, value)
		if gone {
			m.onChange(usedMetrics{}) // it is read from no metric
			q.reader.gauges.forgetDrops(m.runner.Name)
		}
		return gone
	})
	return samples, errors.Join(append(faults, err)...)
}

// enginesOfPrometheus returns the source of the engines behind a gateway that Prometheus knows.
func (r *Reader) enginesOfPrometheus(p *promQuery, gateway Runner) source {
	q := &engineQuery{groups: newGroups(p, r), gateway: gateway, reader: r,
		engines: map[string]*metrics{}}
	return source{target: gateway.Name, kind: "engines", every: r.cfg.Prometheus.Every,
		read: q.read} // which limits its time
}
