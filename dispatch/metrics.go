package dispatch

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/upstream"
	"github.com/tidefill/tidefill/store"
)

// metrics holds the dispatcher's Prometheus metrics.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	first    *prometheus.HistogramVec
	// as runners report them
	queueWait  *prometheus.HistogramVec
	gpuTime    *prometheus.CounterVec
	streams    *prometheus.CounterVec
	dropped    *prometheus.CounterVec
	lines      *prometheus.CounterVec
	tokens     *prometheus.CounterVec
	accounts   accounts // of lines and tokens
	ends       *prometheus.CounterVec
	deliveries *prometheus.CounterVec
	// batches of which no line was in flight by their start_by
	startsMissed prometheus.Counter
	unranked     prometheus.Gauge // batches that the ordering policy can't rank
	status       *statusMetrics
	feed         *feed

	runners sync.Map // *runnerMetrics by name
	// removed holds when runners were removed whose series are still there, by name; used by
	// Prepare alone
	removed map[string]time.Time
}

// runnerMetrics holds the metrics of one runner, since a lookup by labels takes longer than
// counting.
type runnerMetrics struct {
	ends     [plan.Outcomes]prometheus.Counter
	duration prometheus.Observer
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		requests: counters("tidefill_requests_total", "Requests sent to runners, by how they "+
			"ended: succeeded; refused (4xx); shed (429 or 503); failed (5xx); denied (401, 403, "+
			"a redirection); garbled (a body that is no answer of the endpoint); too_long; "+
			"timed_out; unreachable; died (the connection broke); evicted "+
			"(cancelled for interactive requests, or with the batch); "+
			"check_failed (the answer fails the check of its batch).", "runner", "outcome"),
		duration: seconds("tidefill_request_duration_seconds",
			"Time from sending a line to the last byte of its answer.", 600),
		first: seconds("tidefill_first_token_seconds",
			"Time from sending a streamed line to its first token.", 120),
		queueWait: seconds("tidefill_runner_queue_wait_seconds",
			"Time that lines waited in the runner, as its header X-Queue-Wait-Ms says.", 120),
		gpuTime: counters("tidefill_runner_gpu_seconds_total",
			"Time for which lines were computed, as the runner's header X-GPU-Time-Ms says.",
			"runner"),
		dropped: counters("tidefill_requests_dropped_total",
			"Requests that llm-d's endpoint picker dropped, by its header "+
				"x-llm-d-request-dropped-reason. Saturation, expiry and eviction count as shed in "+
				"tidefill_requests_total; no endpoints, shutting down and cancelled contexts as "+
				"unreachable.", "runner", "reason"),
		streams: counters("tidefill_streams_total",
			"Lines for whose answer a stream was requested: "+
				"streamed; not_streamed, answered at once; failed; refused or not_understood, "+
				"sent again without streaming.", "runner", "result"),
		lines: counters("tidefill_lines_total",
			"Lines whose result is durable: completed, or failed (in the error file). "+
				"After 200 pairs of tenant and model, others have `other`.",
			"result", "tenant", "model"),
		tokens: counters("tidefill_tokens_total", "Tokens of durable results, input and output, "+
			"as reported in the usage of the answers: the harvest. "+
			"After 200 pairs of tenant and model, others have `other`.",
			"kind", "tenant", "model"),
		ends: counters("tidefill_batches_ended_total", "Batches that ended, by final state. "+
			"expired: the completion window ended before all lines were done.", "state"),
		deliveries: counters("tidefill_deliveries_total", "Deliveries of results to the bucket "+
			"that a batch names (output_url): delivered; failed, tried again; given_up, the batch "+
			"ended without.", "result"),
		status: &statusMetrics{},
		feed:   newFeed(),
		startsMissed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tidefill_start_by_missed_total",
			Help: "Batches of which no line was in flight by their start_by.",
		}),
		unranked: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tidefill_unranked_batches",
			Help: "Batches that the ordering policy can't rank, and that go last.",
		}),
	}
	for _, state := range []store.State{store.Completed, store.Failed, store.Expired,
		store.Cancelled} {
		m.ends.WithLabelValues(string(state)) // rates need a zero to begin with
	}
	if registerer != nil {
		registerer.MustRegister(m.requests, m.duration, m.first, m.streams, m.lines, m.tokens,
			m.queueWait, m.gpuTime, m.dropped, m.ends, m.deliveries, m.status, m.startsMissed,
			m.unranked, m.feed)
	}
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// seconds returns histograms by runner, with buckets up to a number of seconds.
func seconds(name, help string, longest float64) *prometheus.HistogramVec {
	all := []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
	n := slices.Index(all, longest) + 1
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: all[:n],
	}, []string{"runner"})
}

// Finished implements [send.Metrics].
func (m *metrics) Finished(runner string, outcome plan.Outcome, latency time.Duration) {
	of := m.of(runner)
	of.ends[outcome].Inc()
	of.duration.Observe(latency.Seconds())
}

// FirstToken implements [send.Metrics].
func (m *metrics) FirstToken(runner string, latency time.Duration) {
	m.first.WithLabelValues(runner).Observe(latency.Seconds())
}

// Streamed implements [send.Metrics].
func (m *metrics) Streamed(runner, result string) {
	m.streams.WithLabelValues(runner, result).Inc()
}

// Reported implements [send.Metrics].
func (m *metrics) Reported(runner string, r openai.Report) {
	if r.QueueWait >= 0 {
		m.queueWait.WithLabelValues(runner).Observe(r.QueueWait.Seconds())
	}
	if r.GPUTime > 0 {
		m.gpuTime.WithLabelValues(runner).Add(r.GPUTime.Seconds())
	}
	if r.Dropped != "" {
		m.dropped.WithLabelValues(runner, string(r.Dropped)).Inc()
	}
}

func (m *metrics) of(runner string) *runnerMetrics {
	if known, ok := m.runners.Load(runner); ok {
		return known.(*runnerMetrics)
	}
	made := &runnerMetrics{duration: m.duration.WithLabelValues(runner)}
	for o := range plan.Outcomes {
		made.ends[o] = m.requests.WithLabelValues(runner, plan.Outcome(o).String())
	}
	known, _ := m.runners.LoadOrStore(runner, made)
	return known.(*runnerMetrics)
}

// keepSeries is the time for which the series of a removed runner are kept, so that its last lines
// end and are scraped.
const keepSeries = 30 * time.Minute

// prune notes which runners were removed, and removes the series of those that have been gone for
// long. Pods have names of their own, so otherwise their series would become more and more.
func (m *metrics) prune(now time.Time, runners, before map[string]*upstream.Runner) {
	if m.removed == nil {
		m.removed = map[string]time.Time{}
	}
	for name := range before {
		m.removed[name] = now
	}
	for name, at := range m.removed {
		switch {
		case runners[name] != nil:
			delete(m.removed, name)
		case now.Sub(at) >= keepSeries:
			delete(m.removed, name)
			m.forget(name)
		}
	}
}

// forget removes the series of a runner.
func (m *metrics) forget(runner string) {
	of := prometheus.Labels{"runner": runner}
	m.runners.Delete(runner)
	for _, c := range []*prometheus.CounterVec{m.requests, m.gpuTime, m.streams, m.dropped} {
		c.DeletePartialMatch(of)
	}
	for _, h := range []*prometheus.HistogramVec{m.duration, m.first, m.queueWait} {
		h.DeletePartialMatch(of)
	}
}

// Committed implements [finish.Metrics].
func (m *metrics) Committed(tenant, model string, c store.Commit) {
	of := m.accounts.labels(tenant, model)
	for result, lines := range map[string]int{"completed": c.Completed, "failed": c.Failed} {
		m.lines.WithLabelValues(result, of.tenant, of.model).Add(float64(lines))
	}
	for kind, tokens := range map[string]int64{
		"input": c.Usage.InputTokens, "output": c.Usage.OutputTokens} {
		m.tokens.WithLabelValues(kind, of.tenant, of.model).Add(float64(tokens))
	}
}

// Delivered implements [finish.Metrics].
func (m *metrics) Delivered(result string) { m.deliveries.WithLabelValues(result).Inc() }

// Ended implements [finish.Metrics].
func (m *metrics) Ended(state store.State) { m.ends.WithLabelValues(string(state)).Inc() }
