package inline

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/dispatch/plan"
)

type metrics struct {
	requests  *prometheus.CounterVec
	refused   *prometheus.CounterVec
	running   prometheus.Gauge
	queueWait *prometheus.HistogramVec
	firstTime *prometheus.HistogramVec
	tokenTime *prometheus.HistogramVec
}

// otherModel is the use case and target of models that are no use case. Users choose their names,
// so these can't be labels.
const otherModel = "other"

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	flow := []string{"use_case", "target", "class"}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidefill_inline_requests_total",
			Help: "Interactive requests that runners were sent, by outcome. One that goes to " +
				"another runner counts twice. The use case other: models that are none.",
		}, append(flow, "outcome")),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidefill_inline_refused_total",
			Help: "Interactive requests that got no answer of a runner, by class (empty: not " +
				"known yet) and reason.",
		}, []string{"class", "reason"}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tidefill_inline_requests",
			Help: "Interactive requests in progress, those that wait included.",
		}),
		queueWait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tidefill_inline_queue_wait_seconds",
			Help:    "Time that interactive requests waited for their place.",
			Buckets: []float64{.001, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 600},
		}, flow),
		firstTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tidefill_inline_first_token_seconds",
			Help: "Time from the arrival of a streamed interactive request to its first token, " +
				"its wait included.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 600},
		}, flow),
		tokenTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tidefill_inline_token_seconds",
			Help: "Average time per output token of a streamed interactive request, after its " +
				"first.",
			Buckets: []float64{.002, .005, .01, .015, .02, .03, .04, .05, .075, .1, .15, .2, .5,
				1},
		}, flow),
	}
	if registerer == nil {
		return m, nil
	}
	var faults []error
	for _, c := range []prometheus.Collector{m.requests, m.refused, m.running, m.queueWait,
		m.firstTime, m.tokenTime} {
		faults = append(faults, registerer.Register(c))
	}
	return m, errors.Join(faults...)
}

// labels returns the use case, target and class of a request.
func labels(x *exchange) (useCase, target, class string) {
	if x.useCase.Implicit {
		return otherModel, otherModel, x.request.Flow.Class
	}
	return x.useCase.Name, x.request.Model, x.request.Flow.Class
}

func (m *metrics) refuse(x *exchange, f *failure) {
	m.refused.WithLabelValues(x.request.Flow.Class, f.reason).Inc()
}

func (m *metrics) first(x *exchange, now time.Time) {
	useCase, target, class := labels(x)
	m.firstTime.WithLabelValues(useCase, target, class).Observe(now.Sub(x.began).Seconds())
}

func (m *metrics) ended(x *exchange, a *answer, r plan.RequestEnded) {
	useCase, target, class := labels(x)
	m.requests.WithLabelValues(useCase, target, class, r.Outcome.String()).Inc()
	m.queueWait.WithLabelValues(useCase, target, class).Observe(
		a.place.Admission().Waited.Seconds())
	if r.OutputTokens > 1 && !a.spoke.IsZero() && a.last.After(a.spoke) {
		m.tokenTime.WithLabelValues(useCase, target, class).Observe(
			a.last.Sub(a.spoke).Seconds() / float64(r.OutputTokens-1))
	}
}
