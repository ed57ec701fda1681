package driver

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/autoscale"
)

// metrics are those of scaling.
type metrics struct {
	failing                          prometheus.Gauge
	wanted, reported, deadline, rate *prometheus.GaugeVec
	replicas, reason, unknownPools   *prometheus.GaugeVec
	coldStart, harvest               *prometheus.GaugeVec
	lastReason                       map[string]autoscale.Reason
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tidefill_scaling_" + name,
			Help: help}, append([]string{"pool"}, labels...))
	}
	m := &metrics{
		failing: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tidefill_scaling_failing",
			Help: "1 if the last decision about replicas could not be made, else 0."}),
		wanted: gauge("wanted_replicas",
			"Replicas that should exist, without those that drain."),
		reported: gauge("reported_replicas",
			"Replicas that are reported to KEDA: those wanted, and those that drain."),
		deadline: gauge("deadline_replicas",
			"Replicas that traffic and deadlines need, before bounds and hold times."),
		rate: gauge("interactive_requests",
			"Interactive requests per second that are expected until a replica could be ready."),
		replicas: gauge("replicas", "Replicas that exist, by phase.", "phase"),
		reason: gauge("reason",
			"1 for what determines the number of replicas now.", "reason"),
		unknownPools: gauge("unknown",
			"1 if the replicas of the pool are not known, so that nothing is decided for it."),
		coldStart: gauge("cold_start_seconds", "Expected time of a start."),
		harvest: gauge("harvest_share",
			"Share of the predicted batch work that replicas have achieved."),
		lastReason: map[string]autoscale.Reason{},
	}
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.failing, m.wanted, m.reported, m.deadline, m.rate,
		m.replicas, m.reason, m.unknownPools, m.coldStart, m.harvest} {
		if err := registerer.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// decided shows the decision for a pool and its state.
func (m *metrics) decided(s *autoscale.PoolSnapshot) {
	m.unknownPools.WithLabelValues(s.Pool).Set(0)
	m.wanted.WithLabelValues(s.Pool).Set(float64(s.Replicas))
	m.reported.WithLabelValues(s.Pool).Set(float64(s.Reported))
	m.deadline.WithLabelValues(s.Pool).Set(float64(max(s.Terms.Deadline, s.Terms.Interactive)))
	m.rate.WithLabelValues(s.Pool).Set(s.Terms.Rate)
	m.coldStart.WithLabelValues(s.Pool).Set(s.Terms.ColdStart.Seconds())
	m.harvest.WithLabelValues(s.Pool).Set(s.Terms.Share)
	for phase, n := range map[string]int{"starting": s.Starting, "ready": s.Ready,
		"draining": s.Draining} {
		m.replicas.WithLabelValues(s.Pool, phase).Set(float64(n))
	}
	if last, known := m.lastReason[s.Pool]; known && last != s.Reason {
		m.reason.DeleteLabelValues(s.Pool, string(last))
	}
	m.lastReason[s.Pool] = s.Reason
	m.reason.WithLabelValues(s.Pool, string(s.Reason)).Set(1)
}

// forget removes what belongs to a pool.
func (m *metrics) forget(pool string) {
	for _, g := range []*prometheus.GaugeVec{m.wanted, m.reported, m.deadline, m.rate, m.replicas,
		m.reason, m.unknownPools, m.coldStart, m.harvest} {
		g.DeletePartialMatch(prometheus.Labels{"pool": pool})
	}
	delete(m.lastReason, pool)
}

// unknown shows that the replicas of a pool are not known.
func (m *metrics) unknown(pool string) { m.unknownPools.WithLabelValues(pool).Set(1) }
