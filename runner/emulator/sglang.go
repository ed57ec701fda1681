package emulator

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/simulator/engine"
)

// Bucket edges are SGLang's, in seconds and in tokens.
var (
	sglangFirstToken = []float64{.1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200,
		400}
	sglangGap = []float64{.002, .004, .006, .008, .01, .015, .02, .025, .03, .035, .04, .06, .08,
		.1, .2, .4, .6, .8, 1, 2, 4, 6, 8}
	sglangRequest = []float64{.1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400,
		600, 1200, 1800, 2400}
	sglangLengths = []float64{100, 300, 500, 700, 1000, 1500, 2000, 3000, 4000, 5000, 6000, 7000,
		8000, 9000, 10000, 12500, 15000, 17500, 20000, 22500, 25000, 27500, 30000, 35000, 40000,
		60000, 80000, 100000, 200000, 300000, 400000, 600000, 800000, 1000000, 1100000}
)

const (
	// decodeLogInterval is the number of iterations without a prompt after which gauges are
	// refreshed.
	decodeLogInterval = 40
	// idleLogInterval is the time without an iteration after which they are.
	idleLogInterval = 30 * time.Second
	// forceStreamInterval is the number of tokens between two reports of an answer that is not
	// streamed. The scheduler reports a streamed answer with each token.
	forceStreamInterval = 50
)

// sglang exports metrics as SGLang does, started with --enable-metrics and
// --collect-tokens-histogram.
//
// Gauges are refreshed by iterations that compute prompts and by each 40th of the others, and then
// still count the requests that end with it; an idle engine refreshes them after 30 s only.
// realtime_tokens_total counts in each iteration, so it shows parts of prompts. Other counters of
// tokens move when requests end. Times to the first token and between tokens are those of reports:
// of an answer that is not streamed they come every 50 tokens, and each gap is the mean of 50.
type sglang struct {
	meters
	shown page

	firstToken                     map[bool]prometheus.Histogram // by whether it is streamed
	gap, request, prompts, answers prometheus.Histogram

	prefilled uint64 // Counters.PrefilledTokens after the last iteration
	decodes   int    // iterations without a prompt
	lastEnd   time.Time
}

func newSGLang(c Config, r prometheus.Registerer) exporter {
	m := meters{r, "sglang:", prometheus.Labels{"model_name": c.Models[0],
		"engine_type": "unified", "tp_rank": "0", "pp_rank": "0"}}
	// The process that counts requests knows no ranks.
	of := meters{r, m.prefix, prometheus.Labels{"model_name": c.Models[0]}}
	x := &sglang{
		meters: m, shown: page{gauges: engine.Snapshot{KVBlocks: c.kvBlocks()}},
		firstToken: map[bool]prometheus.Histogram{},
		gap: of.histogram("inter_token_latency_seconds",
			"Histogram of inter-token latency in seconds.", sglangGap),
		request: of.histogram("e2e_request_latency_seconds",
			"Histogram of End-to-end request latency in seconds", sglangRequest),
		prompts: of.histogram("prompt_tokens_histogram", "Histogram of prompt token length.",
			sglangLengths),
		answers: of.histogram("generation_tokens_histogram",
			"Histogram of generation token length.", sglangLengths),
	}
	for streamed, label := range map[bool]string{false: "false", true: "true"} {
		x.firstToken[streamed] = meters{r, m.prefix, prometheus.Labels{"model_name": c.Models[0],
			"is_streaming": label}}.histogram("time_to_first_token_seconds",
			"Histogram of time to first token in seconds.", sglangFirstToken)
	}
	return x
}

func (x *sglang) produced(t *ticket, at time.Time, c clock) {
	if t.tokens == 1 {
		x.shown.began.add(t)
	}
	if t.streamed() || t.tokens%forceStreamInterval == 0 {
		x.report(t, at, c)
	}
}

// report counts the tokens of a sequence since its last report.
func (x *sglang) report(t *ticket, at time.Time, c clock) {
	if t.reported == 0 {
		x.firstToken[t.streamed()].Observe(
			c.real(at.Sub(t.submitted) + engine.ServerDelay(1)).Seconds())
	} else {
		n := t.tokens - t.reported
		for range n {
			x.gap.Observe(c.real(at.Sub(t.reportedAt)).Seconds() / float64(n))
		}
	}
	t.reported, t.reportedAt = t.tokens, at
}

func (x *sglang) finished(t *ticket, c clock) {
	if t.reported < t.tokens {
		x.report(t, t.lastToken, c)
	}
	x.shown.ended.add(t)
	x.request.Observe(c.real(t.duration()).Seconds())
	x.prompts.Observe(float64(t.prompt))
	x.answers.Observe(float64(t.tokens))
}

func (x *sglang) answered(string) {}

func (x *sglang) iterated(it *engine.Iteration, s engine.Snapshot) {
	prefills := s.PrefilledTokens > x.prefilled
	x.prefilled, x.shown.counters, x.lastEnd = s.PrefilledTokens, s, it.End
	if !prefills {
		x.decodes++
	}
	if prefills || x.decodes%decodeLogInterval == 0 {
		x.shown.gauges = withLeft(s, it.Aborted)
		x.shown.gauges.Running += len(it.Finished)
	}
}

func (x *sglang) page(now time.Time, live engine.Snapshot) page {
	if live.Running == 0 && live.Waiting == 0 && now.Sub(x.lastEnd) >= idleLogInterval {
		x.shown.gauges = live
	}
	return x.shown
}

func (x *sglang) families() []family {
	of := meters{prefix: x.prefix, labels: prometheus.Labels{
		"model_name": x.labels["model_name"]}}
	all := x.split("realtime_tokens_total", "Tokens processed, by mode, in each iteration.",
		"mode", map[string]func(*page) uint64{
			"prefill_compute": func(p *page) uint64 { return p.counters.PrefilledTokens },
			"prefill_cache":   func(p *page) uint64 { return p.counters.PrefixHits },
			"decode": func(p *page) uint64 { // first tokens come with the prompt
				return p.counters.GeneratedTokens - min(p.began.requests,
					p.counters.GeneratedTokens)
			},
		})
	all = append(all, of.split("cached_tokens_total",
		"Number of cached prompt tokens by source (device/host/storage).", "cache_source",
		map[string]func(*page) uint64{
			"device": func(p *page) uint64 { return p.ended.cached },
		})...)
	return append(all,
		x.gauge("num_running_reqs", "The number of running requests.", running),
		x.gauge("num_queue_reqs", "The number of requests in the waiting queue.", waiting),
		x.gauge("token_usage", "The token usage.", kvUsed),
		x.gauge("num_used_tokens", "The number of used tokens.", func(p *page) float64 {
			return float64(p.gauges.KVBlocksUsed * engine.BlockSize)
		}),
		x.gauge("max_total_num_tokens", "Maximum total number of tokens in the KV cache pool.",
			func(p *page) float64 { return float64(p.gauges.KVBlocks * engine.BlockSize) }),
		x.counter("num_retracted_requests_total", "Number of retracted requests.",
			func(p *page) uint64 { return p.counters.Preemptions }),
		of.counter("prompt_tokens_total", "Number of prefill tokens processed.",
			func(p *page) uint64 { return p.ended.prompt }),
		of.counter("generation_tokens_total", "Number of generation tokens processed.",
			func(p *page) uint64 { return p.ended.output }),
		of.counter("num_requests_total", "Number of requests processed.",
			func(p *page) uint64 { return p.ended.requests }),
	)
}
