package emulator

import (
	"cmp"
	"maps"
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
	iterationBuckets = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
)

// longestModel is the context length by which lengths are counted if the configuration has none.
const longestModel = 1 << 20

// vllm exports metrics as vLLM V1 does.
//
// Gauges, and the counters of the scheduler, show the state at the end of the last iteration, so
// they freeze while none runs. An abort is applied between two iterations: if it leaves nothing to
// run, the aborted requests stay in the gauges (vllm-project/vllm#22545). Gaps between tokens are
// counted in each iteration, the prompt of a request at its first token, and the histograms of
// requests when they end. Iterations without a token, which compute parts of prompts only, are not
// in iteration_tokens_total. Each process that answers clients counts its own requests' part of an
// iteration there, so with several of them an iteration counts several times.
type vllm struct {
	meters
	config prometheus.Labels // of cache_config_info
	shown  page

	firstToken, gap, request, queue, perToken prometheus.Histogram
	prompt, answer, iteration                 prometheus.Histogram // tokens
	success                                   *prometheus.CounterVec

	tokens []int // of the present iteration, with the prompts of first tokens, by API server
}

func newVLLM(c Config, r prometheus.Registerer) exporter {
	m := meters{r, "vllm:", prometheus.Labels{"model_name": c.Models[0], "engine": "0"}}
	lengths := engine.LengthBounds(cmp.Or(c.MaxModelLen, longestModel))
	x := &vllm{
		meters: m, shown: page{gauges: engine.Snapshot{KVBlocks: c.kvBlocks()}},
		tokens: make([]int, c.APIServers),
		config: prometheus.Labels{"block_size": strconv.Itoa(engine.BlockSize),
			"num_gpu_blocks":        strconv.Itoa(c.kvBlocks()),
			"enable_prefix_caching": strconv.FormatBool(c.PrefixCaching)},
		firstToken: m.histogram("time_to_first_token_seconds",
			"Histogram of time to first token in seconds.", firstTokenBuckets),
		gap: m.histogram("inter_token_latency_seconds",
			"Histogram of inter-token latency in seconds.", tokenGapBuckets),
		request: m.histogram("e2e_request_latency_seconds",
			"Histogram of e2e request latency in seconds.", requestBuckets),
		queue: m.histogram("request_queue_time_seconds",
			"Histogram of time spent in WAITING phase for request.", requestBuckets),
		perToken: m.histogram("request_time_per_output_token_seconds",
			"Histogram of time per output token of a request in seconds.", tokenGapBuckets),
		prompt: m.histogram("request_prompt_tokens", "Number of prefill tokens processed.",
			lengths),
		answer: m.histogram("request_generation_tokens", "Number of generation tokens processed.",
			lengths),
		iteration: m.histogram("iteration_tokens_total",
			"Histogram of number of tokens per engine_step.", iterationBuckets),
		success: m.counters("request_success_total", "Count of successfully processed requests.",
			"finished_reason"),
	}
	maps.Copy(x.config, m.labels)
	for _, reason := range []string{finishStop, finishLength} {
		x.success.WithLabelValues(reason)
	}
	return x
}

func (x *vllm) produced(t *ticket, at time.Time, c clock) {
	server := &x.tokens[uint64(t.id)%uint64(len(x.tokens))]
	*server++
	if t.tokens > 1 {
		x.gap.Observe(c.real(at.Sub(t.lastToken)).Seconds())
		return
	}
	x.firstToken.Observe(c.real(at.Sub(t.submitted) + engine.ServerDelay(1)).Seconds())
	x.queue.Observe(c.real(t.admitted.Sub(t.submitted)).Seconds())
	x.shown.began.add(t)
	*server += t.prompt - t.cached
}

func (x *vllm) finished(t *ticket, c clock) {
	x.success.WithLabelValues(t.finish).Inc()
	x.prompt.Observe(float64(t.prompt))
	x.answer.Observe(float64(t.tokens))
	x.request.Observe(c.real(t.duration()).Seconds())
	if t.tokens > 1 {
		x.perToken.Observe(c.real(t.perToken()).Seconds())
	}
}

func (x *vllm) answered(finish string) { x.success.WithLabelValues(finish).Inc() }

func (x *vllm) iterated(it *engine.Iteration, s engine.Snapshot) {
	x.shown.gauges, x.shown.counters = withLeft(s, it.Aborted), s
	for _, n := range x.tokens {
		if n > 0 {
			x.iteration.Observe(float64(n))
		}
	}
	clear(x.tokens)
}

func (x *vllm) page(time.Time, engine.Snapshot) page { return x.shown }

func (x *vllm) families() []family {
	return append(x.split("prompt_tokens_by_source_total",
		"Number of prefill tokens processed, by source.", "source",
		map[string]func(*page) uint64{
			"local_compute":        func(p *page) uint64 { return p.began.prompt - p.began.cached },
			"local_cache_hit":      func(p *page) uint64 { return p.began.cached },
			"external_kv_transfer": func(*page) uint64 { return 0 },
		}),
		x.gauge("num_requests_running", "Number of requests in model execution batches.", running),
		x.gauge("num_requests_waiting", "Number of requests waiting to be processed.", waiting),
		x.gauge("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", kvUsed),
		x.counter("num_preemptions_total", "Cumulative number of preemption from the engine.",
			func(p *page) uint64 { return p.counters.Preemptions }),
		x.counter("prompt_tokens_total", "Number of prefill tokens processed.",
			func(p *page) uint64 { return p.began.prompt }),
		x.counter("prompt_tokens_cached_total", "Number of cached prompt tokens.",
			func(p *page) uint64 { return p.began.cached }),
		x.counter("generation_tokens_total", "Number of generation tokens processed.",
			func(p *page) uint64 { return p.counters.GeneratedTokens }),
		x.counter("prefix_cache_queries_total",
			"Prefix cache queries, in terms of number of queried tokens.",
			func(p *page) uint64 { return p.counters.PrefixQueries }),
		x.counter("prefix_cache_hits_total",
			"Prefix cache hits, in terms of number of cached tokens.",
			func(p *page) uint64 { return p.counters.PrefixHits }),
		meters{prefix: x.prefix, labels: x.config}.gauge("cache_config_info",
			"Information of the LLMEngine CacheConfig", func(*page) float64 { return 1 }),
	)
}
