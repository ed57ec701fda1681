package telemetry

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/tidefill/tidefill/flowcontrol"
)

// usedMetrics lists the metrics of a page that the signals are read from.
type usedMetrics struct {
	engine  string            // that the page belongs to; empty: unknown
	prefix  string            // of the engine's metrics on the page
	names   map[string]string // of the metrics, by signal
	dropped []drop            // what the page has, but no value can be read from
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
	for i := range m {
		for _, prefix := range m[i].Prefixes {
			if r, found := m[i].read(p, prefix, at); found.engine != "" {
				return r, found
			}
		}
	}
	return flowcontrol.NoReading(flowcontrol.Metrics, at), usedMetrics{}
}

// read reads the signals under one prefix. usedMetrics is empty if the page has no signal running.
func (e *engine) read(
	p page, prefix string, at time.Time,
) (r flowcontrol.Reading, found usedMetrics) {
	r = flowcontrol.NoReading(flowcontrol.Metrics, at)
	found = usedMetrics{engine: e.Engine, prefix: prefix, names: map[string]string{}}
	for _, s := range signals {
		for i := range e.Signals[s.name] {
			source := &e.Signals[s.name][i]
			value, stamped, why, ok := source.value(p, prefix, s.mean)
			if !ok {
				continue
			}
			// The page has this metric, so another that is listed after it is not read even if the
			// value has a fault: they may count differently.
			found.names[s.name] = prefix + source.selector.String()
			if why != "" {
				found.dropped = append(found.dropped, drop{s.name, why})
				break
			}
			*s.field(&r) = value
			if !stamped.IsZero() && stamped.Before(r.Sampled) {
				r.Sampled = stamped
			}
			break
		}
		if s.name == runningSignal && found.names[s.name] == "" {
			return r, usedMetrics{} // the page of another engine
		}
	}
	for _, h := range histograms {
		var why fault
		*h.field(&r), found.names[h.name], why = e.histogram(p, prefix, h.name)
		if why != "" {
			found.dropped = append(found.dropped, drop{h.name, why})
		}
	}
	return r, found
}

// latencies returns the latency histograms of a page, for the engine that read has found. Nil: the
// page has none.
func (m signalMap) latencies(p page, found usedMetrics) (ttft, tpot []flowcontrol.Bucket) {
	for _, e := range m {
		if e.Engine == found.engine {
			ttft, _, _ = e.histogram(p, found.prefix, ttftHistogram)
			tpot, _, _ = e.histogram(p, found.prefix, tpotHistogram)
			return ttft, tpot
		}
	}
	return nil, nil
}

// histogram returns the histogram of the first metric listed under key that the page has, and the
// name of the metric. It adds up the series of the metric. With a fault there is no histogram.
func (e *engine) histogram(
	p page, prefix, key string,
) (h []flowcontrol.Bucket, name string, why fault) {
	for i := range e.Signals[key] {
		source := &e.Signals[key][i]
		counts := map[float64]float64{}
		for _, sample := range p[model.LabelValue(prefix+source.selector.name+"_bucket")] {
			if !source.selector.matches(sample.Metric) {
				continue
			}
			name = prefix + source.selector.String()
			upper, err := strconv.ParseFloat(string(sample.Metric[model.BucketLabel]), 64)
			if err != nil {
				why = faultNotFinite
				continue
			}
			counts[upper] += float64(sample.Value)
			if of := faultOf(float64(sample.Value)); of != "" {
				why = of
			}
		}
		if name == "" {
			continue
		}
		for _, upper := range slices.Sorted(maps.Keys(counts)) {
			h = append(h, flowcontrol.Bucket{Upper: upper, Count: counts[upper]})
		}
		if why == "" {
			why = faultOfBuckets(h)
		}
		if why != "" {
			return nil, name, why
		}
		return h, name, ""
	}
	return nil, "", ""
}

// faultOfBuckets returns the fault of a histogram that is sorted by edge; empty: it has none.
func faultOfBuckets(h []flowcontrol.Bucket) fault {
	for _, b := range h {
		if of := faultOf(b.Count); of != "" {
			return of
		}
		if math.IsNaN(b.Upper) || math.IsInf(b.Upper, -1) {
			return faultNotFinite
		}
	}
	if len(h) == 0 || !math.IsInf(h[len(h)-1].Upper, 1) {
		return faultIncomplete
	}
	return ""
}

// value reads the metric from a page, as the sum of its series or as their mean; ok is false if the
// page has none. With a fault there is no value. The timestamp is the oldest of the series; zero:
// none.
func (m *metric) value(
	p page, prefix string, mean bool,
) (value float64, stamped time.Time, why fault, ok bool) {
	value, stamped, why, ok = aggregate(p, prefix, m.selector, m.Labels, mean)
	if !ok || m.Factor == "" {
		return value, stamped, why, ok
	}
	factor, _, of, ok := aggregate(p, prefix, m.factor, nil, true)
	switch {
	case why != "":
	case of != "":
		why = of
	default:
		value *= factor
		why = faultOf(value)
	}
	return value, stamped, why, ok
}

// aggregate returns the sum of the selected series, or their mean, and their oldest timestamp. If
// labels are given, the value of a series is the product of these labels, and a series without
// numbers there is left out.
func aggregate(
	p page, prefix string, s selector, labels []string, mean bool,
) (sum float64, stamped time.Time, why fault, ok bool) {
	count := 0.0
	for _, sample := range p[model.LabelValue(prefix+s.name)] {
		if !s.matches(sample.Metric) {
			continue
		}
		value := float64(sample.Value)
		if len(labels) > 0 {
			if value = product(sample.Metric, labels); math.IsNaN(value) {
				continue
			}
		}
		if of := faultOf(value); of != "" {
			why = of
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
	if why == "" {
		why = faultOf(sum)
	}
	return sum, stamped, why, count > 0
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
