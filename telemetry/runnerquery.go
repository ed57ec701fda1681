package telemetry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// runnerQuery reads the metrics of runners from Prometheus, for networks in which only Prometheus
// reaches their pages.
type runnerQuery struct {
	query   *promQuery
	label   string     // that identifies the runner
	runners []*metrics // with the value of the label as the address of their page
	values  []string   // of the label, by runner
}

// runnersOfAQuery limits how many runners one query selects, and so the size of its answer.
const runnersOfAQuery = 16

func (q *runnerQuery) read(ctx context.Context) (samples []Sample, err error) {
	var faults []error
	for first := 0; first < len(q.runners); first += runnersOfAQuery {
		last := min(first+runnersOfAQuery, len(q.runners))
		of, err := q.readSome(ctx, q.runners[first:last], q.values[first:last])
		samples = append(samples, of...)
		faults = append(faults, err)
	}
	return samples, errors.Join(faults...)
}

// readSome reads some runners with two queries: the values, and the time at which they were
// scraped. Both are for the same moment, so that they are from the same scrape.
func (q *runnerQuery) readSome(
	ctx context.Context, runners []*metrics, values []string,
) (samples []Sample, err error) {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = regexp.QuoteMeta(value)
	}
	pages, times, err := q.query.pages(ctx, q.label, strings.Join(quoted, "|"), runners[0].wanted,
		runners[0].signals)
	if err != nil {
		return nil, err
	}
	var faults []error
	for i, m := range runners {
		at, known := times[values[i]]
		if !known {
			faults = append(faults, fmt.Errorf("query %s: no metrics of an engine have %s=%q; "+
				"check telemetry.prometheus.runners: %w", q.query.cfg.URL, q.label, values[i],
				errNoData))
			continue
		}
		of, err := m.sampleOf(ctx, q.label, values[i], pages[values[i]], at)
		samples, faults = append(samples, of...), append(faults, err)
	}
	return samples, errors.Join(faults...)
}

// sampleOf returns the sample of a runner by what Prometheus has of it.
func (m *metrics) sampleOf(
	ctx context.Context, label, value string, p page, at time.Time,
) ([]Sample, error) {
	of, err := m.sample(ctx, p, at, label+"="+value)
	if errors.Is(err, errUnknownPage) { // which must not slow down the other runners
		err = fmt.Errorf("%v: %w", err, errNoData)
	}
	return of, err
}

// pages returns what Prometheus has of the runners whose label matches a regular expression, and
// when it was scraped, by the value of the label.
func (q *promQuery) pages(
	ctx context.Context, label, matching string, wanted map[string]bool, signals signalMap,
) (pages map[string]page, times map[string]time.Time, err error) {
	labels := label + "=~" + strconv.Quote(matching)
	names := slices.Sorted(maps.Keys(wanted))
	all, err := q.query(ctx, fmt.Sprintf(`{__name__=~%q,%s}`, strings.Join(names, "|"), labels))
	if err != nil {
		return nil, nil, err
	}
	pages, times = map[string]page{}, map[string]time.Time{}
	var gauges []string
	for _, s := range all {
		of, name := string(s.Metric[model.LabelName(label)]), s.Metric[model.MetricNameLabel]
		if pages[of] == nil {
			pages[of] = page{}
		}
		// The time of the sample is that of the query.
		pages[of][name] = append(pages[of][name], &model.Sample{Metric: s.Metric, Value: s.Value})
		if signals.isRunning(string(name)) {
			gauges = append(gauges, fmt.Sprintf("timestamp(%s{%s})", name, labels))
		}
	}
	if slices.Sort(gauges); len(gauges) > 0 {
		stamps, err := q.queryAt(ctx, all[0].Timestamp, fmt.Sprintf("min by (%s) (%s)",
			label, strings.Join(slices.Compact(gauges), " or ")))
		if err != nil {
			return nil, nil, err
		}
		for _, s := range stamps {
			if at := float64(s.Value); at > 0 && at < math.MaxInt32 {
				times[string(s.Metric[model.LabelName(label)])] = time.UnixMilli(int64(at * 1000))
			}
		}
	}
	return pages, times, nil
}

// isRunning reports whether a metric is one that the signal running is read from.
func (m signalMap) isRunning(name string) bool {
	for _, e := range m {
		for _, prefix := range e.Prefixes {
			for _, source := range e.Signals[runningSignal] {
				if prefix+source.selector.name == name {
					return true
				}
			}
		}
	}
	return false
}

// runnersOfPrometheus returns the source of the runners without a metrics page of their own; false:
// Prometheus is not configured to be read for them, or there are none.
func (r *Reader) runnersOfPrometheus(p *promQuery) (source, bool) {
	cfg := r.cfg.Prometheus.Runners
	q := &runnerQuery{query: p, label: cfg.Label}
	for _, to := range r.deps.Runners {
		if cfg.Label == "" || to.Metrics != "" || to.Engines != "" {
			continue
		}
		value := to.Name
		if given := cfg.Values[to.Name]; given != "" {
			value = given
		}
		q.runners, q.values = append(q.runners, r.metricsOf(to)), append(q.values, value)
	}
	if cfg.Label != "" && len(q.runners) == 0 && !r.hasEngines() {
		r.log.Warn("no runner is read from Prometheus, because all have a page of their own; set "+
			"metrics: none for upstreams whose page can't be reached, or remove "+
			"telemetry.prometheus.runners", "label", cfg.Label)
	}
	groups := (len(q.runners) + runnersOfAQuery - 1) / runnersOfAQuery
	return source{target: "prometheus", kind: "runners", every: r.cfg.Prometheus.Every,
		timeout: time.Duration(2*groups) * r.cfg.Prometheus.Timeout, read: q.read}, groups > 0
}
