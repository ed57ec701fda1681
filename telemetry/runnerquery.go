package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
)

// runnerQuery reads the metrics of runners from Prometheus, for networks in which only Prometheus
// reaches their pages.
type runnerQuery struct {
	query  *promQuery
	reader *Reader
	label  string // that identifies the runner

	mu      sync.Mutex
	runners []*metrics // only read uses what they point to
	values  []string   // of the label, by runner
	warned  bool       // that there are no such runners
}

// pagesKind names the source of the runners that Prometheus is read for.
const pagesKind = "runners"

// runnersOfAQuery limits how many runners one query selects, and so the size of its answer.
const runnersOfAQuery = 16

func (q *runnerQuery) read(ctx context.Context) (samples []Sample, err error) {
	q.mu.Lock()
	runners, values := q.runners, q.values
	q.mu.Unlock()
	groups := (len(runners) + runnersOfAQuery - 1) / runnersOfAQuery
	ctx, cancel := context.WithTimeout(ctx, time.Duration(2*groups)*q.query.cfg.Timeout)
	defer cancel()
	var faults []error
	for first := 0; first < len(runners); first += runnersOfAQuery {
		last := min(first+runnersOfAQuery, len(runners))
		of, err := q.readSome(ctx, runners[first:last], values[first:last])
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
		values = append(values, cmp.Or(q.query.cfg.Runners.Values[to.Name], to.Name))
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
			"telemetry.prometheus.runners", "label", q.label)
	}
}
