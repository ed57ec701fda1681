package emulator

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/simulator/engine"
)

// Bucket edges are vLLM's, in seconds.
var (
	firstTokenBuckets = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5,
		7.5, 10, 20, 40, 80, 160, 640, 2560}
	tokenGapBuckets = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5,
		7.5, 10, 20, 40, 80}
	requestBuckets = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120,
		240, 480, 960, 1920, 7680}
)

// longestModel is the context length by which lengths are counted if the configuration has none.
const longestModel = 1 << 20

// metrics are vLLM's, with its names and labels, and some of the emulator's own about its
// interactive traffic. Times are as a client of the runner sees them.
type metrics struct {
	registry *prometheus.Registry

	firstToken prometheus.Histogram
	tokenGap   prometheus.Histogram
	request    prometheus.Histogram
	queue      prometheus.Histogram
	perToken   prometheus.Histogram
	prompt     prometheus.Histogram // tokens
	answer     prometheus.Histogram // tokens
	success    *prometheus.CounterVec

	interactiveFirstToken prometheus.Histogram
	interactivePerToken   prometheus.Histogram
	interactiveShed       prometheus.Counter
	served                func(Served) // Config.Served
}

func newMetrics(model string, modelLen int) *metrics {
	labels := prometheus.Labels{"model_name": model, "engine": "0"}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help,
			Buckets: buckets, ConstLabels: labels})
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		firstToken: histogram("vllm:time_to_first_token_seconds",
			"Histogram of time to first token in seconds.", firstTokenBuckets),
		tokenGap: histogram("vllm:inter_token_latency_seconds",
			"Histogram of inter-token latency in seconds.", tokenGapBuckets),
		request: histogram("vllm:e2e_request_latency_seconds",
			"Histogram of e2e request latency in seconds.", requestBuckets),
		queue: histogram("vllm:request_queue_time_seconds",
			"Histogram of time spent in WAITING phase for request.", requestBuckets),
		perToken: histogram("vllm:request_time_per_output_token_seconds",
			"Histogram of time per output token of a request in seconds.", tokenGapBuckets),
		prompt: histogram("vllm:request_prompt_tokens", "Number of prefill tokens processed.",
			engine.LengthBounds(modelLen)),
		answer: histogram("vllm:request_generation_tokens",
			"Number of generation tokens processed.", engine.LengthBounds(modelLen)),
		success: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm:request_success_total", Help: "Count of successfully processed requests.",
			ConstLabels: labels,
		}, []string{"finished_reason"}),
		interactiveFirstToken: histogram("emulator_interactive_time_to_first_token_seconds",
			"Time to first token of the emulator's own interactive requests.", firstTokenBuckets),
		interactivePerToken: histogram("emulator_interactive_time_per_output_token_seconds",
			"Mean time per output token of the emulator's own interactive requests.",
			tokenGapBuckets),
		interactiveShed: prometheus.NewCounter(prometheus.CounterOpts{
			Name:        "emulator_interactive_shed_total",
			Help:        "The emulator's own interactive requests that found the queue full.",
			ConstLabels: labels,
		}),
	}
	for _, reason := range []string{finishStop, finishLength} {
		m.success.WithLabelValues(reason)
	}
	m.registry.MustRegister(m.firstToken, m.tokenGap, m.request, m.queue, m.perToken, m.prompt,
		m.answer, m.success, m.interactiveFirstToken, m.interactivePerToken, m.interactiveShed)
	return m
}

func (m *metrics) first(t *ticket, c clock) {
	seconds := c.real(t.firstToken.Sub(t.submitted) + engine.ServerDelay(1)).Seconds()
	m.firstToken.Observe(seconds)
	m.queue.Observe(c.real(t.admitted.Sub(t.submitted)).Seconds())
	if t.interactive {
		m.interactiveFirstToken.Observe(seconds)
	}
}

func (m *metrics) gap(d time.Duration) { m.tokenGap.Observe(d.Seconds()) }

func (m *metrics) finish(t *ticket, c clock) {
	defer m.serve(t, c)
	m.success.WithLabelValues(t.finish).Inc()
	m.prompt.Observe(float64(t.prompt))
	m.answer.Observe(float64(t.tokens))
	m.request.Observe(c.real(t.lastToken.Sub(t.submitted) + engine.ServerDelay(t.tokens)).Seconds())
	if t.tokens < 2 {
		return
	}
	mean := c.real(t.lastToken.Sub(t.firstToken)).Seconds() / float64(t.tokens-1)
	m.perToken.Observe(mean)
	if t.interactive {
		m.interactivePerToken.Observe(mean)
	}
}

// serve reports an interactive request that has been answered.
func (m *metrics) serve(t *ticket, c clock) {
	if !t.interactive || m.served == nil {
		return
	}
	s := Served{FirstToken: c.real(t.firstToken.Sub(t.submitted) + engine.ServerDelay(1))}
	if t.tokens > 1 {
		s.PerToken = c.real(t.lastToken.Sub(t.firstToken)) / time.Duration(t.tokens-1)
	}
	m.served(s)
}

// engineCollector converts a snapshot of the engine to vLLM's gauges and counters.
type engineCollector struct {
	read     func() engine.Snapshot
	families []engineFamily
	info     *prometheus.Desc
	caching  bool
}

type engineFamily struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(engine.Snapshot) float64
}

func newEngineCollector(model string, caching bool, read func() engine.Snapshot) *engineCollector {
	labels := prometheus.Labels{"model_name": model, "engine": "0"}
	family := func(name, help string, kind prometheus.ValueType,
		value func(engine.Snapshot) float64) engineFamily {
		return engineFamily{prometheus.NewDesc(name, help, nil, labels), kind, value}
	}
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	return &engineCollector{
		read: read,
		families: []engineFamily{
			family("vllm:num_requests_running", "Number of requests in model execution batches.",
				gauge,
				func(s engine.Snapshot) float64 { return float64(s.Running) }),
			family("vllm:num_requests_waiting", "Number of requests waiting to be processed.",
				gauge,
				func(s engine.Snapshot) float64 { return float64(s.Waiting) }),
			family("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", gauge,
				engine.Snapshot.KVUtilization),
			family("vllm:num_preemptions_total", "Cumulative number of preemption from the engine.",
				counter,
				func(s engine.Snapshot) float64 { return float64(s.Preemptions) }),
			family("vllm:prompt_tokens_total", "Number of prefill tokens processed.", counter,
				func(s engine.Snapshot) float64 { return float64(s.PromptTokens) }),
			family("vllm:generation_tokens_total", "Number of generation tokens processed.",
				counter,
				func(s engine.Snapshot) float64 { return float64(s.GeneratedTokens) }),
			family("vllm:prefix_cache_queries_total",
				"Prefix cache queries, in terms of number of queried tokens.", counter,
				func(s engine.Snapshot) float64 { return float64(s.PrefixQueries) }),
			family("vllm:prefix_cache_hits_total",
				"Prefix cache hits, in terms of number of cached tokens.", counter,
				func(s engine.Snapshot) float64 { return float64(s.PrefixHits) }),
		},
		info: prometheus.NewDesc("vllm:cache_config_info",
			"Information of the LLMEngine CacheConfig",
			[]string{"block_size", "num_gpu_blocks", "enable_prefix_caching"}, labels),
		caching: caching,
	}
}

func (c *engineCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range c.families {
		ch <- f.desc
	}
	ch <- c.info
}

func (c *engineCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.read()
	for _, f := range c.families {
		ch <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(s))
	}
	ch <- prometheus.MustNewConstMetric(c.info, prometheus.GaugeValue, 1,
		strconv.Itoa(engine.BlockSize), strconv.Itoa(s.KVBlocks), strconv.FormatBool(c.caching))
}
