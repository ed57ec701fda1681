package cluster

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/store/postgres"
	"github.com/tidefill/tidefill/store/segments"
)

// Metrics are what a process measures of its database and bucket.
type Metrics struct {
	transactions *prometheus.HistogramVec
	unavailable  prometheus.Counter
	failovers    *prometheus.CounterVec
	outages      outages
	requests     *prometheus.HistogramVec
	commits      *prometheus.HistogramVec
	records      prometheus.Counter
	bytes        prometheus.Counter
}

// seconds are bucket bounds from a transaction on the same machine to a bucket that hangs.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// NewMetrics returns metrics that are not registered.
func NewMetrics() *Metrics {
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help,
			Buckets: seconds}, labels)
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &Metrics{
		transactions: histogram("tidefill_postgres_transaction_seconds",
			"Time that transactions took with all their attempts, by whether they write.", "write"),
		unavailable: counter("tidefill_postgres_unavailable_total",
			"Transactions that failed since the server could not be reached or refused to work."),
		failovers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidefill_postgres_failovers_total",
			Help: "Times that the database answered again after transactions had failed " +
				"(outage), and that another server was found to be the primary (promotion).",
		}, []string{"event"}),
		requests: histogram("tidefill_bucket_request_seconds",
			"Time that tries of requests to the bucket took, by request and result.", "request",
			"result"),
		commits: histogram("tidefill_segment_commit_seconds",
			"Time that segments took to be stored and registered, by result.", "result"),
		records: counter("tidefill_segment_records_total", "Records in committed segments."),
		bytes:   counter("tidefill_segment_bytes_total", "Bytes of committed segments."),
	}
	for _, event := range []string{outageEvent, promotionEvent} {
		m.failovers.WithLabelValues(event) // rates need a zero to begin with
	}
	return m
}

// Register registers the metrics, and those of the connections that stats describes. nil: not.
func (m *Metrics) Register(r prometheus.Registerer, stats func() postgres.PoolStats) error {
	if r == nil {
		return nil
	}
	gauge := func(name, help string, value func(postgres.PoolStats) int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return float64(value(stats())) })
	}
	var errs []error
	for _, c := range []prometheus.Collector{
		m.transactions, m.unavailable, m.failovers, m.requests, m.commits, m.records, m.bytes,
		gauge("tidefill_postgres_connections", "Open connections to the database.",
			func(s postgres.PoolStats) int { return s.Open }),
		gauge("tidefill_postgres_connections_in_use", "Connections that run a transaction.",
			func(s postgres.PoolStats) int { return s.InUse }),
		gauge("tidefill_postgres_connections_limit", "Most connections that may be open.",
			func(s postgres.PoolStats) int { return s.Most }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "tidefill_postgres_connections_opened_total",
			Help: "Connections opened; many of them in a short time follow a failover."},
			func() float64 { return float64(stats().Opened) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "tidefill_postgres_connection_wait_seconds_total",
			Help: "Time that transactions waited for a connection."},
			func() float64 { return stats().Waited.Seconds() }),
	} {
		errs = append(errs, r.Register(c))
	}
	return errors.Join(errs...)
}

func (m *Metrics) transaction(write bool, took time.Duration, unavailable error) {
	m.transactions.WithLabelValues(strconv.FormatBool(write)).Observe(took.Seconds())
	if unavailable != nil {
		m.unavailable.Inc()
	}
	if m.outages.note(time.Now(), took, unavailable != nil) {
		m.failovers.WithLabelValues(outageEvent).Inc()
	}
}

// promoted counts that another server is the primary.
func (m *Metrics) promoted() { m.failovers.WithLabelValues(promotionEvent).Inc() }

func (m *Metrics) request(name string, took time.Duration, err error) {
	m.requests.WithLabelValues(name, result(err)).Observe(took.Seconds())
}

func (m *Metrics) commit(a segments.Attempt) {
	m.commits.WithLabelValues(result(a.Err)).Observe((a.Put + a.Register).Seconds())
	if a.Err == nil {
		m.records.Add(float64(a.Records))
		m.bytes.Add(float64(a.Bytes))
	}
}

func result(err error) string {
	if err != nil {
		return "failed"
	}
	return "ok"
}
