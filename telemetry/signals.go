package telemetry

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/flowcontrol"
)

//go:embed signals.yaml
var builtInSignals []byte

// signal is something that a metrics page shows.
type signal struct {
	name string
	mean bool // of several series; else their sum
	of   func(*flowcontrol.Reading) *float64
}

// signals are all, in the order in which they are logged.
var signals = []signal{
	{"running", false, func(r *flowcontrol.Reading) *float64 { return &r.Running }},
	{"waiting", false, func(r *flowcontrol.Reading) *float64 { return &r.Waiting }},
	{"kv_used", true, func(r *flowcontrol.Reading) *float64 { return &r.KVUsed }},
	{"kv_tokens", false, func(r *flowcontrol.Reading) *float64 { return &r.KVTokens }},
	{"prompt_tokens", false, func(r *flowcontrol.Reading) *float64 { return &r.PromptTokens }},
	{"cached_tokens", false, func(r *flowcontrol.Reading) *float64 { return &r.CachedTokens }},
	{"output_tokens", false, func(r *flowcontrol.Reading) *float64 { return &r.OutputTokens }},
	{"preemptions", false, func(r *flowcontrol.Reading) *float64 { return &r.Preemptions }},
}

// engine is how one kind of engine calls its signals.
type engine struct {
	Engine   string            `yaml:"engine"`
	Prefixes []string          `yaml:"prefixes"`
	Signals  map[string][]name `yaml:"signals"`
}

// name is one way to find a signal.
type name struct {
	Metric string `yaml:"metric"`
	// whose values' product is the signal's value; empty: the series' own value
	Labels []string `yaml:"labels"`
	Times  string   `yaml:"times"` // a metric that the value is multiplied by; empty: none

	metric, times selector
}

// UnmarshalYAML takes a bare name for its metric.
func (n *name) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		n.Metric = node.Value
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if key := node.Content[i].Value; key != "metric" && key != "labels" && key != "times" {
			return fmt.Errorf("line %d: %q is not metric, labels or times", node.Content[i].Line,
				key)
		}
	}
	type plain name
	return node.Decode((*plain)(n))
}

// signalMap is all engines, in the order in which they are tried.
type signalMap []engine

// loadSignals reads the file, or the built-in map if path is empty.
func loadSignals(path string) (signalMap, error) {
	if path == "" {
		return parseSignals(builtInSignals)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read signal map: %w", err)
	}
	m, err := parseSignals(text)
	if err != nil {
		return nil, fmt.Errorf("signal map %s: %w", path, err)
	}
	return m, nil
}

func parseSignals(text []byte) (signalMap, error) {
	var m signalMap
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&m); err != nil {
		return nil, err
	}
	if len(m) == 0 {
		return nil, errors.New("it names no engine")
	}
	for _, e := range m {
		if e.Engine == "" || len(e.Prefixes) == 0 || len(e.Signals["running"]) == 0 {
			return nil, fmt.Errorf("engine %q: engine, prefixes and signals.running must be given",
				e.Engine)
		}
		for _, of := range slices.Sorted(maps.Keys(e.Signals)) {
			if !slices.ContainsFunc(signals, func(s signal) bool {
				return s.name == of
			}) && of != ttftHistogram && of != tpotHistogram {
				return nil, fmt.Errorf("engine %s: %q is no signal", e.Engine, of)
			}
			for i := range e.Signals[of] {
				if err := e.Signals[of][i].parse(); err != nil {
					return nil, fmt.Errorf("engine %s, signal %s: %w", e.Engine, of, err)
				}
			}
		}
	}
	return m, nil
}

func (n *name) parse() (err error) {
	if n.metric, err = parseSelector(n.Metric); err == nil && n.Times != "" {
		n.times, err = parseSelector(n.Times)
	}
	return err
}

// page is what a metrics page shows, by the metrics' names.
type page map[model.LabelValue]model.Vector

// resolved says under which names a page shows its signals.
type resolved struct {
	engine string            // empty: of no known engine
	prefix string            // of its names
	names  map[string]string // by signal
}

// Histograms stand in the map beside the signals. They are of all requests of an engine, so no
// policy sees them.
const (
	ttftHistogram = "ttft"
	tpotHistogram = "tpot"
)

// read finds the signals of a page. Their time is the oldest that the page itself gives for one of
// them, else the given one.
func (m signalMap) read(p page, at time.Time) (flowcontrol.Reading, resolved) {
	r := flowcontrol.NoReading(flowcontrol.Metrics, at)
	for _, e := range m {
		for _, prefix := range e.Prefixes {
			found := resolved{engine: e.Engine, prefix: prefix, names: map[string]string{}}
			for _, s := range signals {
				for i := range e.Signals[s.name] {
					n := &e.Signals[s.name][i]
					if value, stamped, ok := n.value(p, prefix, s.mean); ok {
						*s.of(&r) = value
						found.names[s.name] = prefix + n.metric.String()
						if !stamped.IsZero() && stamped.Before(r.Sampled) {
							r.Sampled = stamped
						}
						break
					}
				}
				if s.name == "running" && found.names[s.name] == "" {
					break // another's page
				}
			}
			if found.names["running"] != "" {
				return r, found
			}
		}
	}
	return r, resolved{}
}

// latencies are the histograms of a page whose signals were found so.
func (m signalMap) latencies(p page, found resolved) (ttft, tpot []flowcontrol.Bucket) {
	for _, e := range m {
		if e.Engine == found.engine {
			return e.histogram(p, found.prefix, ttftHistogram),
				e.histogram(p, found.prefix, tpotHistogram)
		}
	}
	return nil, nil
}

// histogram adds up the series of the first name that the page shows.
func (e *engine) histogram(p page, prefix, of string) (h []flowcontrol.Bucket) {
	for i := range e.Signals[of] {
		n := &e.Signals[of][i]
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

// value is what the page shows under this name; what is not a number, or negative, is not shown.
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

// product is NaN where a label is no number.
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
