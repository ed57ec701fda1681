package telemetry

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/yamlfault"
)

//go:embed signals.yaml
var builtInSignals []byte

// signal is a value that is read from a metrics page.
type signal struct {
	name  string
	mean  bool // whether the value is the mean of several series, or else their sum
	field func(*flowcontrol.Reading) *float64
}

// signals lists all signals in the order in which they are logged.
var signals = []signal{
	{runningSignal, false, func(r *flowcontrol.Reading) *float64 { return &r.Running }},
	{"waiting", false, func(r *flowcontrol.Reading) *float64 { return &r.Waiting }},
	{"kv_used", true, func(r *flowcontrol.Reading) *float64 { return &r.KVUsed }},
	{"kv_tokens", false, func(r *flowcontrol.Reading) *float64 { return &r.KVTokens }},
	{"requests", false, func(r *flowcontrol.Reading) *float64 { return &r.Requests }},
	{"prompt_tokens", false, func(r *flowcontrol.Reading) *float64 { return &r.PromptTokens }},
	{"cached_tokens", false, func(r *flowcontrol.Reading) *float64 { return &r.CachedTokens }},
	{"output_tokens", false, func(r *flowcontrol.Reading) *float64 { return &r.OutputTokens }},
	{"preemptions", false, func(r *flowcontrol.Reading) *float64 { return &r.Preemptions }},
	{"token_gaps", false, func(r *flowcontrol.Reading) *float64 { return &r.TokenGaps }},
	{"token_gap_time", false, func(r *flowcontrol.Reading) *float64 { return &r.TokenGapTime }},
}

// histogram is a distribution that is read from a metrics page.
type histogram struct {
	name  string
	field func(*flowcontrol.Reading) *[]flowcontrol.Bucket
}

// histograms lists the distributions that policies use, in the order in which they are logged.
var histograms = []histogram{
	{ttftHistogram, func(r *flowcontrol.Reading) *[]flowcontrol.Bucket {
		return &r.FirstTokenTimes
	}},
	{"gap_times", func(r *flowcontrol.Reading) *[]flowcontrol.Bucket { return &r.GapTimes }},
	{"prompt_lengths", func(r *flowcontrol.Reading) *[]flowcontrol.Bucket {
		return &r.PromptLengths
	}},
	{"answer_lengths", func(r *flowcontrol.Reading) *[]flowcontrol.Bucket {
		return &r.AnswerLengths
	}},
}

// isSignal reports whether a signal map may have the key.
func isSignal(key string) bool {
	return key == tpotHistogram ||
		slices.ContainsFunc(signals, func(s signal) bool { return s.name == key }) ||
		slices.ContainsFunc(histograms, func(h histogram) bool { return h.name == key })
}

// runningSignal is the signal that every engine must have. A page with it belongs to the engine.
const runningSignal = "running"

// engine maps the signals of one kind of engine to metrics.
type engine struct {
	Engine   string              `yaml:"engine"`
	Prefixes []string            `yaml:"prefixes"`
	Signals  map[string][]metric `yaml:"signals"`

	line  int            // in the signal map
	lines map[string]int // of the signals
}

// UnmarshalYAML notes the lines of the engine and of its signals, for errors.
func (e *engine) UnmarshalYAML(node *yaml.Node) error {
	e.line, e.lines = node.Line, map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		switch key, value := node.Content[i], node.Content[i+1]; key.Value {
		case "engine", "prefixes":
		case "signals":
			e.noteLines(value, map[*yaml.Node]bool{})
		default:
			return fmt.Errorf("line %d: %q is not one of engine, prefixes and signals", key.Line,
				key.Value)
		}
	}
	type plain engine
	return node.Decode((*plain)(e))
}

// noteLines notes the lines of signals, also of those that are merged from other engines. A table
// that is merged into itself, which the decoder refuses later, is noted once.
func (e *engine) noteLines(signals *yaml.Node, noted map[*yaml.Node]bool) {
	if signals.Kind == yaml.AliasNode {
		signals = signals.Alias
	}
	if noted[signals] {
		return
	}
	noted[signals] = true
	if signals.Kind == yaml.SequenceNode { // <<: [*a, *b]
		for _, merged := range signals.Content {
			e.noteLines(merged, noted)
		}
		return
	}
	for i := 0; i+1 < len(signals.Content); i += 2 {
		key := signals.Content[i]
		if key.Value == "<<" {
			e.noteLines(signals.Content[i+1], noted)
			continue
		}
		e.lines[key.Value] = key.Line
	}
}

// metric is a metric that a signal can be read from.
type metric struct {
	Metric string `yaml:"metric"`
	// Labels names labels whose values are multiplied to give the value of the signal. Empty: the
	// value of the series is used.
	Labels []string `yaml:"labels"`
	// Factor names a metric that the value is multiplied by. Empty: none.
	Factor string `yaml:"times"`

	selector selector // of Metric
	factor   selector // of Factor
}

// UnmarshalYAML accepts a string as the name of the metric.
func (m *metric) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		m.Metric = node.Value
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if key := node.Content[i].Value; key != "metric" && key != "labels" && key != "times" {
			return fmt.Errorf("line %d: %q is not one of metric, labels and times",
				node.Content[i].Line, key)
		}
	}
	type plain metric
	return node.Decode((*plain)(m))
}

// signalMap lists the engines in the order in which they are tried.
type signalMap []engine

// loadSignals reads a signal map from a file, or the built-in one if path is empty.
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
		return nil, fmt.Errorf("signal map %s:%w", path, err)
	}
	return m, nil
}

// parseSignals reads a signal map. Errors begin with a line number and a colon.
func parseSignals(text []byte) (signalMap, error) {
	var m signalMap
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	switch err := d.Decode(&m); {
	case errors.Is(err, io.EOF) || err == nil && len(m) == 0:
		return nil, errors.New("1: it lists no engine; start from a copy of " +
			"telemetry/signals.yaml")
	case err != nil:
		return nil, withLine(err, text)
	}
	for _, e := range m {
		if e.Engine == "" || len(e.Prefixes) == 0 || len(e.Signals[runningSignal]) == 0 {
			return nil, fmt.Errorf(
				"%d: engine %q: engine, prefixes and signals.running must be given", e.line,
				e.Engine)
		}
		for _, key := range slices.Sorted(maps.Keys(e.Signals)) {
			if !isSignal(key) {
				return nil, fmt.Errorf("%d: engine %s: %q is not a signal; see the list in "+
					"telemetry/signals.yaml", e.lines[key], e.Engine, key)
			}
			for i := range e.Signals[key] {
				if err := e.Signals[key][i].parse(); err != nil {
					return nil, fmt.Errorf("%d: engine %s, signal %s: %w", e.lines[key],
						e.Engine, key, err)
				}
			}
		}
	}
	return m, nil
}

// withLine turns an error of the decoder, such as "yaml: line 3: what", into "3: what".
func withLine(err error, text []byte) error {
	if mismatch := new(yaml.TypeError); errors.As(err, &mismatch) {
		err = errors.New(strings.Join(mismatch.Errors, "; line "))
	}
	line, what := yamlfault.Of(err, text)
	return fmt.Errorf("%d: %s", line, what)
}

func (m *metric) parse() (err error) {
	if m.selector, err = parseSelector(m.Metric); err == nil && m.Factor != "" {
		m.factor, err = parseSelector(m.Factor)
	}
	return err
}

// metrics returns the names of all metrics on pages that signals are read from.
func (m signalMap) metrics() map[string]bool {
	names := map[string]bool{}
	for _, e := range m {
		for _, prefix := range e.Prefixes {
			for _, sources := range e.Signals {
				for _, s := range sources {
					names[prefix+s.selector.name] = true
					names[prefix+s.selector.name+"_bucket"] = true
					if s.Factor != "" {
						names[prefix+s.factor.name] = true
					}
				}
			}
		}
	}
	return names
}
