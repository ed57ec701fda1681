package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// runnerQuery reads the metrics of runners from Prometheus, for networks in which only Prometheus
// reaches their pages.
type runnerQuery struct {
	groups groups
	reader *Reader

	mu      sync.Mutex
	runners []*metrics // only read uses what they point to
	values  []string   // of the label, by runner
	warned  bool       // that there are no such runners
}

// pagesKind names the source of the runners that Prometheus is read for.
const pagesKind = "runners"

func (q *runnerQuery) read(ctx context.Context) (samples []Sample, err error) {
	q.mu.Lock()
	runners, values := q.runners, q.values
	q.mu.Unlock()
	var faults []error
	err = q.groups.read(ctx, values, func(first, last int, of pages) {
		for i, m := range runners[first:last] {
			value := values[first+i]
			at, known := of.times[value]
			if !known {
				faults = append(faults, fmt.Errorf("query %s: no metrics of an engine have %s=%q; "+
					"check telemetry.prometheus.runners: %w", q.groups.query.cfg.URL,
					q.groups.label, value, errNoData))
				continue
			}
			got, err := m.sampleOf(ctx, q.groups.label, value, of.pages[value], at)
			samples, faults = append(samples, got...), append(faults, err)
		}
	})
	return samples, errors.Join(append(faults, err)...)
}

// sampleOf returns the sample of a runner by what Prometheus has of it.
func (m *metrics) sampleOf(
	ctx context.Context, label, value string, p page, at time.Time,
) ([]Sample, error) {
	of, err := m.sample(ctx, p, at, label+"="+value)
	if errors.Is(err, errUnknownPage) { // which must not slow down the other runners
		//nolint:errorlint // it hides errUnknownPage
		err = fmt.Errorf("%v: %w", err, errNoData)
	}
	return of, err
}

// follow replaces the runners: those without a metrics page of their own are read. What is known of
// those that stay is kept.
func (q *runnerQuery) follow(wanted []Runner) {
	var runners []*metrics
	var values []string
	q.mu.Lock()
	known := q.runners
	q.mu.Unlock()
	gateways := false
	for _, to := range wanted {
		gateways = gateways || to.Engines != ""
		if to.Metrics != "" || to.Engines != "" {
			continue
		}
		i := slices.IndexFunc(known, func(m *metrics) bool { return m.runner.is(to) })
		m := q.reader.metricsOf(to)
		if i >= 0 {
			m = known[i]
		}
		values = append(values, cmp.Or(q.groups.query.cfg.Runners.Values[to.Name], to.Name))
		runners = append(runners, m)
	}
	for _, m := range known {
		if !slices.Contains(runners, m) {
			q.reader.gauges.forget(m.runner.Name, pagesKind)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.runners, q.values = runners, values
	if len(wanted) > 0 && len(runners) == 0 && !gateways && !q.warned {
		q.warned = true
		q.reader.log.Warn("no runner is read from Prometheus, because all have a page of their "+
			"own; set metrics: none for upstreams whose page can't be reached, or remove "+
			"telemetry.prometheus.runners", "label", q.groups.label)
	}
}
