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

// page holds the series of a metrics page by the name of their metric.
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

// resolved lists the metrics of a page that its signals are read from.
type resolved struct {
	engine string            // empty: unknown
	prefix string            // of the names of its metrics
	names  map[string]string // by signal
}

// Histograms are keys of a signal map beside the signals. They count all requests of an engine,
// batch lines included, so policies do not use them.
const (
	ttftHistogram = "ttft"
	tpotHistogram = "tpot"
)

// read returns the signals of a page. Their time is the oldest timestamp of a sample on the page,
// or at, if the page has no timestamps.
func (m signalMap) read(p page, at time.Time) (flowcontrol.Reading, resolved) {
	r := flowcontrol.NoReading(flowcontrol.Metrics, at)
	for _, e := range m {
		for _, prefix := range e.Prefixes {
			found := resolved{engine: e.Engine, prefix: prefix, names: map[string]string{}}
			for _, s := range signals {
				for i := range e.Signals[s.name] {
					n := &e.Signals[s.name][i]
					if value, stamped, ok := n.value(p, prefix, s.mean); ok {
						*s.field(&r) = value
						found.names[s.name] = prefix + n.metric.String()
						if !stamped.IsZero() && stamped.Before(r.Sampled) {
							r.Sampled = stamped
						}
						break
					}
				}
				if s.name == "running" && found.names[s.name] == "" {
					break // the page of another engine
				}
			}
			if found.names["running"] != "" {
				return r, found
			}
		}
	}
	return r, resolved{}
}

// latencies returns the latency histograms of a page that read has resolved. Nil: it has none.
func (m signalMap) latencies(p page, found resolved) (ttft, tpot []flowcontrol.Bucket) {
	for _, e := range m {
		if e.Engine == found.engine {
			return e.histogram(p, found.prefix, ttftHistogram),
				e.histogram(p, found.prefix, tpotHistogram)
		}
	}
	return nil, nil
}

// histogram returns the sum of the series of the first name that the page has.
func (e *engine) histogram(p page, prefix, key string) (h []flowcontrol.Bucket) {
	for i := range e.Signals[key] {
		n := &e.Signals[key][i]
		counts := map[float64]float64{}
		for _, sample := range p[model.LabelValue(prefix+n.metric.name+"_bucket")] {
			if upper, err := strconv.ParseFloat(string(sample.Metric[model.BucketLabel]),
				64); err == nil && n.metric.matches(sample.Metric) {
				counts[upper] += float64(sample.Value)
			}
		}
		for _, upper := range slices.Sorted(maps.Keys(counts)) {
			h = append(h, flowcontrol.Bucket{Upper: upper, Count: counts[upper]})
		}
		if h != nil {
			return h
		}
	}
	return nil
}

// value returns the value of a page under this name. Values that are negative or no finite number
// count as missing.
func (n *name) value(p page, prefix string, mean bool) (value float64, stamped time.Time, ok bool) {
	value, stamped, ok = n.series(p, prefix, n.metric, n.Labels, mean)
	if !ok || n.Times == "" {
		return value, stamped, ok
	}
	factor, _, ok := n.series(p, prefix, n.times, nil, true)
	return value * factor, stamped, ok && !math.IsInf(value*factor, 1)
}

func (n *name) series(
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

// product multiplies the values of labels. It returns NaN if one is no number.
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
