package dispatch

import (
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// metrics holds the dispatcher's Prometheus metrics.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	first    *prometheus.HistogramVec
	// as runners report them
	queueWait *prometheus.HistogramVec
	gpuTime   *prometheus.CounterVec
	streams   *prometheus.CounterVec
	dropped   *prometheus.CounterVec
	lines     *prometheus.CounterVec
	tokens    *prometheus.CounterVec
	ends      *prometheus.CounterVec
	inFlight  *prometheus.GaugeVec
	limit     *prometheus.GaugeVec
	open      *prometheus.GaugeVec
	living    *prometheus.GaugeVec
	reason    *prometheus.GaugeVec
	warning   *prometheus.GaugeVec
	leads     prometheus.Gauge
	// batches of which no line was in flight by their start_by
	startsMissed prometheus.Counter
	unranked     prometheus.Gauge // batches that the ordering policy can't rank

	runners sync.Map        // *runnerMetrics by name
	seen    map[string]bool // runners with gauges; owned by the loop
}

// runnerMetrics holds the metrics of one runner, since a lookup by labels takes longer than
// counting.
type runnerMetrics struct {
	ends     [plan.Outcomes]prometheus.Counter
	duration prometheus.Observer
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		requests: counters("tidefill_requests_total", "Requests sent to runners, by outcome.",
			"runner", "outcome"),
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
			"Requests that a gateway dropped, by x-llm-d-request-dropped-reason. The outcome of "+
				"tidefill_requests_total says what became of them.", "runner", "reason"),
		streams: counters("tidefill_streams_total",
			"Lines for whose answer a stream was requested: "+
				"streamed; not_streamed, answered at once; failed; refused or not_understood, "+
				"sent again without streaming.", "runner", "result"),
		lines: counters("tidefill_lines_total", "Lines whose result is durable.", "result"),
		tokens: counters("tidefill_tokens_total",
			"Tokens of durable results, as reported in the usage of the answers.", "kind"),
		ends: counters("tidefill_batches_ended_total", "Batches that ended, by final state.",
			"state"),
		inFlight: gauges("tidefill_runner_in_flight_lines", "Batch lines in flight.", "runner"),
		limit: gauges("tidefill_runner_allowance_lines", "Batch lines that may be in flight.",
			"runner"),
		open: gauges("tidefill_runner_breaker_open",
			"1 while the circuit breaker of the runner is open: no lines are sent to it.",
			"runner"),
		living: gauges("tidefill_batches",
			"Batches that have not ended, by state; paused ones count as paused.", "state"),
		reason: gauges("tidefill_pool_limited",
			"1 for the reason why a pool starts no more lines now; "+
				"flowing: lines start as others end.", "pool", "reason"),
		warning: gauges("tidefill_pool_warning",
			"1 for what flow control warns of now: what is probably wrong with the pool or its "+
				"configuration. The log has the text.", "pool", "warning"),
		leads: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tidefill_leads",
			Help: "Runners and models that this process leads; 0 while it stands by.",
		}),
		startsMissed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tidefill_start_by_missed_total",
			Help: "Batches of which no line was in flight by their start_by.",
		}),
		unranked: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tidefill_unranked_batches",
			Help: "Batches that the ordering policy can't rank, and that go last.",
		}),
		seen: map[string]bool{},
	}
	if registerer != nil {
		registerer.MustRegister(m.requests, m.duration, m.first, m.streams, m.lines, m.tokens,
			m.queueWait, m.gpuTime, m.dropped,
			m.ends, m.inFlight, m.limit, m.open, m.living, m.reason, m.warning, m.leads,
			m.startsMissed, m.unranked)
	}
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// seconds returns histograms by runner, with buckets up to a number of seconds.
func seconds(name, help string, longest float64) *prometheus.HistogramVec {
	all := []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
	n := slices.Index(all, longest) + 1
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: all[:n],
	}, []string{"runner"})
}

func (m *metrics) finished(runner string, outcome plan.Outcome, latency time.Duration) {
	of := m.of(runner)
	of.ends[outcome].Inc()
	of.duration.Observe(latency.Seconds())
}

func (m *metrics) firstToken(runner string, latency time.Duration) {
	m.first.WithLabelValues(runner).Observe(latency.Seconds())
}

func (m *metrics) streamed(runner, result string) {
	m.streams.WithLabelValues(runner, result).Inc()
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

func (m *metrics) committed(c store.Commit) {
	m.lines.WithLabelValues("completed").Add(float64(c.Completed))
	m.lines.WithLabelValues("failed").Add(float64(c.Failed))
	m.tokens.WithLabelValues("input").Add(float64(c.Usage.InputTokens))
	m.tokens.WithLabelValues("output").Add(float64(c.Usage.OutputTokens))
}

func (m *metrics) ended(state store.State) { m.ends.WithLabelValues(string(state)).Inc() }

// batches sets the number of batches in each state.
func (m *metrics) batches(states map[string]int) {
	m.living.Reset()
	for state, n := range states {
		m.living.WithLabelValues(state).Set(float64(n))
	}
}

// longestLabel limits the label of a pool, in bytes.
const longestLabel = 300

// poolLabel returns the label of a pool: its models or, if they are too many, the first ones and a
// digest of all.
func poolLabel(models []string) string {
	size := 0
	for i, m := range models {
		if size += len(m) + 1; size > longestLabel {
			digest := fnv.New32a()
			for _, m := range models {
				io.WriteString(digest, m+",")
			}
			return fmt.Sprintf("%s (%d of %d, %08x)", strings.Join(models[:i], ","), i, len(models),
				digest.Sum32())
		}
	}
	return strings.Join(models, ",")
}

// pools sets the gauges of pools and runners, and deletes those of runners that have left.
func (m *metrics) pools(pools []plan.PoolStatus) {
	here := map[string]bool{}
	m.reason.Reset()
	m.warning.Reset()
	for _, p := range pools {
		why := string(p.Reason)
		if p.Reason == plan.Flowing {
			why = "flowing"
		}
		m.reason.WithLabelValues(poolLabel(p.Models), why).Set(1)
		for _, w := range p.Warnings {
			m.warning.WithLabelValues(poolLabel(p.Models), w.Code).Set(1)
		}
		for _, r := range p.Runners {
			here[r.ID] = true
			m.seen[r.ID] = true
			m.inFlight.WithLabelValues(r.ID).Set(float64(r.InFlight))
			m.limit.WithLabelValues(r.ID).Set(float64(r.Limit))
			open := 0.0
			if r.Open {
				open = 1
			}
			m.open.WithLabelValues(r.ID).Set(open)
		}
	}
	for id := range m.seen {
		if !here[id] {
			delete(m.seen, id)
			m.inFlight.DeleteLabelValues(id)
			m.limit.DeleteLabelValues(id)
			m.open.DeleteLabelValues(id)
		}
	}
}
