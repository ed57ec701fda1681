package emulator

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/simulator/engine"
)

const (
	// drainInterval is the interval at which the server takes over the statistics of iterations.
	drainInterval = time.Second
	// maxIterationStats bounds the statistics that nobody has read.
	maxIterationStats = 1000
)

// tensorrtLLM exports metrics as TensorRT-LLM's server does, with enable_iter_perf_stats and
// return_perf_metrics.
//
// Its Prometheus page is /prometheus/metrics. Gauges come from the statistics of iterations, which
// the server takes over in bunches: they show the last one of a bunch. Counters of tokens and all
// histograms move when requests end. There is no time between tokens, and iteration_latency_seconds
// is that of one iteration. /metrics serves statistics of iterations as JSON, each once.
type tensorrtLLM struct {
	meters
	shown  page
	latest engine.Snapshot // after the last iteration
	step   time.Duration   // of the last iteration
	drain  time.Time       // when a bunch was taken over last

	firstToken, perToken, request, queue prometheus.Histogram
	success                              *prometheus.CounterVec

	stats []iterationStats // not read yet, the oldest first
}

// iterationStats describes an iteration, as /metrics shows it.
type iterationStats struct {
	Iter              uint64  `json:"iter"`
	IterLatencyMS     float64 `json:"iterLatencyMS"`
	NumActiveRequests int     `json:"numActiveRequests"`
	NumQueuedRequests int     `json:"numQueuedRequests"`
	KVCacheStats      struct {
		MaxNumBlocks   int `json:"maxNumBlocks"`
		UsedNumBlocks  int `json:"usedNumBlocks"`
		FreeNumBlocks  int `json:"freeNumBlocks"`
		TokensPerBlock int `json:"tokensPerBlock"`
	} `json:"kvCacheStats"`
}

func newTensorRTLLM(c Config, r prometheus.Registerer) exporter {
	m := meters{r, "trtllm_", prometheus.Labels{"model_name": c.Models[0],
		"engine_type": "trtllm"}}
	empty := engine.Snapshot{KVBlocks: c.kvBlocks()}
	return &tensorrtLLM{
		meters: m, shown: page{gauges: empty}, latest: empty,
		firstToken: m.histogram("time_to_first_token_seconds",
			"Histogram of time to first token in seconds.", firstTokenBuckets),
		perToken: m.histogram("time_per_output_token_seconds",
			"Histogram of time per output token in seconds.", tokenGapBuckets),
		request: m.histogram("e2e_request_latency_seconds",
			"Histogram of end to end request latency in seconds.", requestBuckets),
		queue: m.histogram("request_queue_time_seconds",
			"Histogram of time spent in WAITING phase for request.", requestBuckets),
		success: m.counters("request_success_total",
			"Count of successfully processed requests.", "finished_reason"),
	}
}

func (x *tensorrtLLM) produced(*ticket, time.Time, clock) {}

func (x *tensorrtLLM) finished(t *ticket, c clock) {
	x.shown.ended.add(t)
	x.success.WithLabelValues(t.finish).Inc()
	x.firstToken.Observe(c.real(t.firstToken.Sub(t.submitted) + engine.ServerDelay(1)).Seconds())
	x.queue.Observe(c.real(t.admitted.Sub(t.submitted)).Seconds())
	x.request.Observe(c.real(t.duration()).Seconds())
	if t.tokens > 1 {
		x.perToken.Observe(c.real(t.perToken()).Seconds())
	}
}

func (x *tensorrtLLM) answered(finish string) { x.success.WithLabelValues(finish).Inc() }

func (x *tensorrtLLM) iterated(it *engine.Iteration, s engine.Snapshot) {
	x.latest, x.step = s, it.Steps[len(it.Steps)-1]
	x.drainBy(it.End)
	n := iterationStats{Iter: s.Iterations, IterLatencyMS: x.step.Seconds() * 1000,
		NumActiveRequests: s.Running, NumQueuedRequests: s.Waiting}
	n.KVCacheStats.MaxNumBlocks, n.KVCacheStats.UsedNumBlocks = s.KVBlocks, s.KVBlocksUsed
	n.KVCacheStats.FreeNumBlocks = s.KVBlocks - s.KVBlocksUsed
	n.KVCacheStats.TokensPerBlock = engine.BlockSize
	if x.stats = append(x.stats, n); len(x.stats) > maxIterationStats {
		x.stats = x.stats[1:]
	}
}

// drainBy takes over the statistics of iterations if it is time.
func (x *tensorrtLLM) drainBy(now time.Time) {
	if now.Sub(x.drain) >= drainInterval {
		x.drain, x.shown.gauges, x.shown.step = now, x.latest, x.step
	}
}

func (x *tensorrtLLM) page(now time.Time, _ engine.Snapshot) page {
	x.drainBy(now)
	return x.shown
}

// takeStats returns the statistics that were not read before.
func (x *tensorrtLLM) takeStats() []iterationStats {
	taken := x.stats
	x.stats = nil
	return taken
}

func (x *tensorrtLLM) families() []family {
	return []family{
		x.gauge("num_requests_running", "Number of active requests", running),
		x.gauge("num_requests_waiting", "Number of queued requests", waiting),
		x.gauge("kv_cache_utilization", "KV cache utilization", kvUsed),
		x.gauge("kv_cache_max_blocks", "Maximum number of KV cache blocks",
			func(p *page) float64 { return float64(p.gauges.KVBlocks) }),
		x.gauge("kv_cache_used_blocks", "Number of used KV cache blocks",
			func(p *page) float64 { return float64(p.gauges.KVBlocksUsed) }),
		x.gauge("kv_cache_tokens_per_block", "Number of tokens per KV cache block",
			func(*page) float64 { return engine.BlockSize }),
		x.gauge("iteration_latency_seconds", "Latency of an iteration",
			func(p *page) float64 { return p.step.Seconds() }),
		x.counter("prompt_tokens_total", "Cumulative number of prompt (input) tokens processed.",
			func(p *page) uint64 { return p.ended.prompt }),
		x.counter("prompt_cached_tokens_total", "Cumulative number of cached prompt tokens.",
			func(p *page) uint64 { return p.ended.cached }),
		x.counter("generation_tokens_total",
			"Cumulative number of generation (output) tokens produced.",
			func(p *page) uint64 { return p.ended.output }),
	}
}

// getIterationStats serves the statistics of iterations that were not read before.
func (s *Server) getIterationStats(w http.ResponseWriter, _ *http.Request) {
	stats := []iterationStats{}
	if x, is := s.metrics.exporter.(*tensorrtLLM); is && s.loop != nil {
		s.loop.mu.Lock()
		stats = append(stats, x.takeStats()...)
		s.loop.mu.Unlock()
	}
	writeJSON(w, http.StatusOK, stats)
}
