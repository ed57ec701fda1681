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

	// The same under the names of the Gateway API inference extension, whose dashboards show them.
	objectives objectiveMetrics
}

// objectiveMetrics are those of the inference extension for each model that users name.
type objectiveMetrics struct {
	requests, faults               *prometheus.CounterVec
	duration, perToken, in, output *prometheus.HistogramVec
}

func newObjectiveMetrics() objectiveMetrics {
	models := []string{"model_name", "target_model_name"}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "inference_objective_" + name, Help: help, Buckets: buckets}, models)
	}
	tokens := prometheus.ExponentialBuckets(1, 4, 10)
	return objectiveMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "inference_objective_request_total",
			Help: "As tidefill_inline_requests_total, under the name of the inference extension.",
		}, models),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "inference_objective_request_error_total",
			Help: "Interactive requests that a runner did not answer well, by outcome.",
		}, append(models, "error_code")),
		duration: histogram("request_duration_seconds", "Time from the arrival of an interactive "+
			"request to the end of its answer.", prometheus.ExponentialBuckets(0.005, 2, 18)),
		perToken: histogram("normalized_time_per_output_token_seconds", "The same time by the "+
			"number of output tokens, which objectives of use cases are about.",
			prometheus.ExponentialBuckets(0.001, 1.5, 20)),
		in:     histogram("input_tokens", "Prompt tokens of interactive requests.", tokens),
		output: histogram("output_tokens", "Output tokens of interactive requests.", tokens),
	}
}

func (m *objectiveMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.faults, m.duration, m.perToken, m.in, m.output}
}

func (m *objectiveMetrics) ended(useCase, target string, took time.Duration, r plan.RequestEnded) {
	m.requests.WithLabelValues(useCase, target).Inc()
	if r.Outcome != plan.Succeeded {
		m.faults.WithLabelValues(useCase, target, r.Outcome.String()).Inc()
		return
	}
	m.duration.WithLabelValues(useCase, target).Observe(took.Seconds())
	if r.PromptTokens > 0 {
		m.in.WithLabelValues(useCase, target).Observe(float64(r.PromptTokens))
	}
	if r.OutputTokens > 0 {
		m.output.WithLabelValues(useCase, target).Observe(float64(r.OutputTokens))
		m.perToken.WithLabelValues(useCase, target).Observe(
			took.Seconds() / float64(r.OutputTokens))
	}
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
	m.objectives = newObjectiveMetrics()
	if registerer == nil {
		return m, nil
	}
	var faults []error
	for _, c := range append(m.objectives.all(), m.requests, m.refused, m.running, m.queueWait,
		m.firstTime, m.tokenTime) {
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
	m.objectives.ended(useCase, target, time.Since(x.began), r)
	m.queueWait.WithLabelValues(useCase, target, class).Observe(
		a.place.Admission().Waited.Seconds())
	if r.OutputTokens > 1 && !a.spoke.IsZero() && a.last.After(a.spoke) {
		m.tokenTime.WithLabelValues(useCase, target, class).Observe(
			a.last.Sub(a.spoke).Seconds() / float64(r.OutputTokens-1))
	}
}
