package emulator

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/simulator/engine"
)

// Engine is the software whose metrics a runner exports, with its names and with the cadences at
// which it updates them. What such an engine computes, and when, is the same for all.
type Engine string

// The engines.
const (
	VLLM        Engine = "vllm"
	SGLang      Engine = "sglang"
	TensorRTLLM Engine = "trtllm"
)

// Engines lists the engines.
func Engines() []Engine { return slices.Sorted(maps.Keys(exporters)) }

// exporters builds the exporter of each engine.
var exporters = map[Engine]func(c Config, r prometheus.Registerer) exporter{
	VLLM: newVLLM, SGLang: newSGLang, TensorRTLLM: newTensorRTLLM,
}

// exporter exports the metrics of one engine. The engine loop calls it with its lock held.
type exporter interface {
	// produced reports a token of a sequence, which came at the end of the present iteration.
	// t.tokens includes it, and t.lastToken is when the token before it came.
	produced(t *ticket, at time.Time, c clock)
	// finished reports a sequence that got all its tokens. Aborted ones are not reported.
	finished(t *ticket, c clock)
	// answered reports a sequence that was answered without an engine, and why it ended. It is
	// called without the lock.
	answered(finish string)
	// iterated reports an iteration after its tokens. s is the state of the engine after it.
	iterated(it *engine.Iteration, s engine.Snapshot)
	// page returns what a scrape shows now, while the engine is in the state live.
	page(now time.Time, live engine.Snapshot) page
	// families lists the gauges and counters that show a page.
	families() []family
}

// page is what the gauges and counters of an engine show.
type page struct {
	gauges   engine.Snapshot // requests and KV blocks, as the engine refreshed them last
	counters engine.Snapshot // as of the last iteration
	began    tokens          // of requests with a first token
	ended    tokens          // of requests that have ended
	step     time.Duration   // the time of one iteration
}

// tokens counts requests and their tokens.
type tokens struct{ requests, prompt, cached, output uint64 }

func (n *tokens) add(t *ticket) {
	n.requests++
	n.prompt += uint64(t.prompt)
	n.cached += uint64(t.cached)
	n.output += uint64(t.tokens)
}

// livePage is the page of a runner without an engine, whose requests end when they come.
func livePage(live engine.Snapshot) page {
	all := tokens{requests: live.Finished, prompt: live.PromptTokens, output: live.GeneratedTokens}
	return page{gauges: live, counters: live, began: all, ended: all}
}

// withLeft returns the state of an engine that still counts requests which have left.
func withLeft(s engine.Snapshot, left []engine.Loss) engine.Snapshot {
	for _, l := range left {
		s.Running++
		s.KVBlocksUsed += (l.Tokens + engine.BlockSize - 1) / engine.BlockSize
	}
	return s
}

// family is a gauge or a counter of an engine.
type family struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	value  func(*page) float64
	labels []string // values of the variable labels
}

// pageCollector collects the families of an exporter.
type pageCollector struct {
	families []family
	read     func() page
}

func (c pageCollector) Describe(ch chan<- *prometheus.Desc) {
	described := map[*prometheus.Desc]bool{} // families of one metric share theirs
	for _, f := range c.families {
		if !described[f.desc] {
			ch <- f.desc
		}
		described[f.desc] = true
	}
}

func (c pageCollector) Collect(ch chan<- prometheus.Metric) {
	p := c.read()
	for _, f := range c.families {
		ch <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(&p), f.labels...)
	}
}

// meters builds metrics with a common prefix and common labels.
type meters struct {
	registry prometheus.Registerer
	prefix   string
	labels   prometheus.Labels
}

func (m meters) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: m.prefix + name, Help: help,
		Buckets: buckets, ConstLabels: m.labels})
	m.registry.MustRegister(h)
	return h
}

func (m meters) counters(name, help, label string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.prefix + name, Help: help,
		ConstLabels: m.labels}, []string{label})
	m.registry.MustRegister(c)
	return c
}

func (m meters) gauge(name, help string, value func(*page) float64) family {
	return family{prometheus.NewDesc(m.prefix+name, help, nil, m.labels), prometheus.GaugeValue,
		value, nil}
}

func (m meters) counter(name, help string, value func(*page) uint64) family {
	return family{prometheus.NewDesc(m.prefix+name, help, nil, m.labels), prometheus.CounterValue,
		func(p *page) float64 { return float64(value(p)) }, nil}
}

// split is a counter with one series for each value of a label.
func (m meters) split(name, help, label string, values map[string]func(*page) uint64) []family {
	d := prometheus.NewDesc(m.prefix+name, help, []string{label}, m.labels)
	var all []family
	for of, value := range values {
		all = append(all, family{d, prometheus.CounterValue,
			func(p *page) float64 { return float64(value(p)) }, []string{of}})
	}
	return all
}

func running(p *page) float64 { return float64(p.gauges.Running) }
func waiting(p *page) float64 { return float64(p.gauges.Waiting) }
func kvUsed(p *page) float64  { return p.gauges.KVUtilization() }
