package telemetry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// groups reads the metrics of many runners from Prometheus, with as many queries as keep each
// answer within largestReply. One goroutine uses it.
type groups struct {
	query    *promQuery
	signals  signalMap
	scrapers usedScrapers
	label    string // that identifies the runner
	// size is the number of runners that one query selects. It is halved when an answer is too
	// large, and doubled after growAfter reads whose answers all fit.
	size int
	fit  int // reads since size changed or an answer was too large
}

const (
	// runnersOfAQuery is the number of runners that one query selects at first, and at most. A vLLM
	// engine has some 120 series of up to 500 bytes for each rank and model.
	runnersOfAQuery = 16
	// growAfter is five minutes of reads at the default interval, so that engines that are always
	// large cost one answer in vain in that time.
	growAfter = 60
)

func newGroups(query *promQuery, r *Reader) groups {
	return groups{query: query, signals: r.signals, label: r.cfg.Prometheus.Runners.Label,
		size: runnersOfAQuery}
}

// pages is what Prometheus has of some runners, by the value of the label.
type pages struct {
	pages map[string]page
	times map[string]time.Time // when the page was scraped; absent: it is of no engine
}

// read reads the runners whose label has one of the values, and passes on those from first to last
// after each query. A query that fails does not keep the others from being made.
func (g *groups) read(
	ctx context.Context, values []string, use func(first, last int, of pages),
) error {
	count := (len(values) + g.size - 1) / g.size
	ctx, cancel := context.WithTimeout(ctx, time.Duration(2*count)*g.query.cfg.Timeout)
	defer cancel()
	g.scrapers.begin()
	var faults []error
	for first := 0; first < len(values); {
		last := min(first+g.size, len(values))
		of, err := g.pages(ctx, values[first:last])
		if errors.Is(err, errTooLarge) {
			g.fit = -1 // this read does not fit
			if last-first > 1 {
				g.size = (last - first) / 2
				continue
			}
		}
		if err != nil {
			faults = append(faults, err)
		} else {
			use(first, last, of)
		}
		first = last
	}
	if g.fit++; g.fit >= growAfter {
		g.size, g.fit = min(2*g.size, runnersOfAQuery), 0
	}
	return errors.Join(faults...)
}

// pages reads some runners with two queries: the values, and the time at which they were scraped.
// Both are for the same moment, so that they are from the same scrape.
func (g *groups) pages(ctx context.Context, values []string) (of pages, err error) {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = regexp.QuoteMeta(value)
	}
	label := model.LabelName(g.label)
	labels := g.matching(strings.Join(quoted, "|"))
	names := slices.Sorted(maps.Keys(g.signals.metrics()))
	all, err := g.query.query(ctx, fmt.Sprintf(`{__name__=~%q,%s}`, strings.Join(names, "|"),
		labels))
	if err != nil {
		return of, err
	}
	running := g.signals.runningMetrics()
	var gauges []string
	for _, s := range all {
		if name := string(s.Metric[model.MetricNameLabel]); slices.Contains(running, name) {
			gauges = append(gauges, fmt.Sprintf("timestamp(%s{%s})", name, labels))
		}
	}
	var stamps model.Vector
	if len(gauges) > 0 {
		slices.Sort(gauges)
		stamps, err = g.query.queryAt(ctx, all[0].Timestamp, fmt.Sprintf("min by (%s) (%s)",
			scrapeLabels(g.label), strings.Join(slices.Compact(gauges), " or ")))
		if err != nil {
			return of, err
		}
	}
	once, times := g.scrapers.once(all, stamps, label)
	of = pages{map[string]page{}, times}
	for _, s := range once {
		value, name := string(s.Metric[label]), s.Metric[model.MetricNameLabel]
		if of.pages[value] == nil {
			of.pages[value] = page{}
		}
		// The time of the sample is that of the query.
		of.pages[value][name] = append(of.pages[value][name],
			&model.Sample{Metric: s.Metric, Value: s.Value})
	}
	return of, nil
}

// runningMetrics returns the names of the metrics that the signal running is read from.
func (m signalMap) runningMetrics() (names []string) {
	for _, e := range m {
		for _, prefix := range e.Prefixes {
			for _, source := range e.Signals[runningSignal] {
				names = append(names, prefix+source.selector.name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// matching returns the condition that the label matches a regular expression as a whole.
func (g *groups) matching(expression string) string {
	return g.label + "=~" + strconv.Quote(expression)
}

// list returns the values of the label that match a regular expression and have the metrics of an
// engine, sorted.
func (g *groups) list(ctx context.Context, expression string) (values []string, err error) {
	found, err := g.query.query(ctx, fmt.Sprintf(`count by (%s) ({__name__=~%q,%s})`, g.label,
		strings.Join(g.signals.runningMetrics(), "|"), g.matching(expression)))
	if err != nil {
		return nil, err
	}
	for _, s := range found {
		values = append(values, string(s.Metric[model.LabelName(g.label)]))
	}
	slices.Sort(values)
	return slices.Compact(values), nil
}
