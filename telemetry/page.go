package telemetry

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/tidefill/tidefill/flowcontrol"
)

// page holds the samples of a metrics page by the name of their metric.
type page map[model.LabelValue]model.Vector

// parsePage parses a metrics page in the exposition formats of Prometheus. Samples without a
// timestamp get the timestamp 0.
func parsePage(body []byte, header http.Header) (page, error) {
	p := page{}
	d := expfmt.NewDecoder(bytes.NewReader(body), expfmt.ResponseFormat(header))
	samples := expfmt.SampleDecoder{Dec: d, Opts: &expfmt.DecodeOptions{}}
	for {
		var family model.Vector
		if err := samples.Decode(&family); errors.Is(err, io.EOF) {
			return p, nil
		} else if err != nil {
			return nil, err
		}
		for _, sample := range family {
			name := sample.Metric[model.MetricNameLabel]
			p[name] = append(p[name], sample)
		}
	}
}

// usedMetrics lists the metrics of a page that the signals are read from.
type usedMetrics struct {
	engine string            // that the page belongs to; empty: unknown
	prefix string            // of the engine's metrics on the page
	names  map[string]string // of the metrics, by signal
}

// These keys of engine.Signals name the latency histograms. Histograms include the latencies of
// batch lines, so policies do not use them; they are only recorded.
const (
	ttftHistogram = "ttft"
	tpotHistogram = "tpot"
)

// read reads the signals of a page that was received at the given time. It uses the first engine
// and prefix for which the page has the signal running; usedMetrics is empty if there is none. The
// reading's time is the oldest timestamp of its samples, or the time of receipt if that is older or
// the samples have no timestamps.
func (m signalMap) read(p page, at time.Time) (flowcontrol.Reading, usedMetrics) {
	r := flowcontrol.NoReading(flowcontrol.Metrics, at)
	for _, e := range m {
		for _, prefix := range e.Prefixes {
			found := usedMetrics{engine: e.Engine, prefix: prefix, names: map[string]string{}}
			for _, s := range signals {
				for i := range e.Signals[s.name] {
					source := &e.Signals[s.name][i]
					if value, stamped, ok := source.value(p, prefix, s.mean); ok {
						*s.field(&r) = value
						found.names[s.name] = prefix + source.selector.String()
						if !stamped.IsZero() && stamped.Before(r.Sampled) {
							r.Sampled = stamped
						}
						break
					}
				}
				if s.name == runningSignal && found.names[s.name] == "" {
					break // the page of another engine
				}
			}
			if found.names[runningSignal] == "" {
				continue
			}
			for _, h := range histograms {
				*h.field(&r), found.names[h.name] = e.histogram(p, prefix, h.name)
			}
			return r, found
		}
	}
	return r, usedMetrics{}
}

// latencies returns the latency histograms of a page, for the engine that read has found. Nil: the
// page has none.
func (m signalMap) latencies(p page, found usedMetrics) (ttft, tpot []flowcontrol.Bucket) {
	for _, e := range m {
		if e.Engine == found.engine {
			ttft, _ = e.histogram(p, found.prefix, ttftHistogram)
			tpot, _ = e.histogram(p, found.prefix, tpotHistogram)
			return ttft, tpot
		}
	}
	return nil, nil
}

// histogram returns the histogram of the first metric listed under key that the page has, and the
// name of the metric. It adds up the series of the metric.
func (e *engine) histogram(p page, prefix, key string) (h []flowcontrol.Bucket, name string) {
	for i := range e.Signals[key] {
		source := &e.Signals[key][i]
		counts := map[float64]float64{}
		for _, sample := range p[model.LabelValue(prefix+source.selector.name+"_bucket")] {
			if upper, err := strconv.ParseFloat(string(sample.Metric[model.BucketLabel]),
				64); err == nil && source.selector.matches(sample.Metric) {
				counts[upper] += float64(sample.Value)
			}
		}
		for _, upper := range slices.Sorted(maps.Keys(counts)) {
			h = append(h, flowcontrol.Bucket{Upper: upper, Count: counts[upper]})
		}
		if h != nil {
			return h, prefix + source.selector.String()
		}
	}
	return nil, ""
}

// value reads the metric from a page, as the sum of its series or as their mean. Values that are
// negative or not finite count as missing. The timestamp is the oldest of the series; zero: none.
func (m *metric) value(
	p page, prefix string, mean bool,
) (value float64, stamped time.Time, ok bool) {
	value, stamped, ok = aggregate(p, prefix, m.selector, m.Labels, mean)
	if !ok || m.Factor == "" {
		return value, stamped, ok
	}
	factor, _, ok := aggregate(p, prefix, m.factor, nil, true)
	return value * factor, stamped, ok && !math.IsInf(value*factor, 1)
}

// aggregate returns the sum of the selected series, or their mean, and their oldest timestamp. If
// labels are given, the value of a series is the product of these labels.
func aggregate(
	p page, prefix string, s selector, labels []string, mean bool,
) (sum float64, stamped time.Time, ok bool) {
	count := 0.0
	for _, sample := range p[model.LabelValue(prefix+s.name)] {
		if !s.matches(sample.Metric) {
			continue
		}
		value := float64(sample.Value)
		if len(labels) > 0 {
			value = product(sample.Metric, labels)
		}
		if !(value >= 0) || math.IsInf(value, 1) {
			continue
		}
		sum, count = sum+value, count+1
		if at := sample.Timestamp.Time(); sample.Timestamp != 0 &&
			(stamped.IsZero() || at.Before(stamped)) {
			stamped = at
		}
	}
	if mean && count > 0 {
		sum /= count
	}
	return sum, stamped, count > 0 && !math.IsInf(sum, 1)
}

// product returns the product of the values of labels, or NaN if one is not a number.
func product(metric model.Metric, labels []string) float64 {
	value := 1.0
	for _, label := range labels {
		factor, err := strconv.ParseFloat(strings.TrimSpace(string(metric[model.LabelName(label)])),
			64)
		if err != nil {
			return math.NaN()
		}
		value *= factor
	}
	return value
}
