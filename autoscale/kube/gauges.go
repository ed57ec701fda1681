package kube

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/internal/collectors"
)

// gauges holds the Cluster's own metrics.
type gauges struct {
	restarts *prometheus.CounterVec
	errors   *prometheus.CounterVec
	leader   prometheus.Gauge
	cpu      *prometheus.GaugeVec
	memory   *prometheus.GaugeVec
}

func newGauges(registerer prometheus.Registerer, ages func() map[string]time.Duration) *gauges {
	g := &gauges{
		restarts: collectors.Once(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidefill_kubernetes_watch_restarts_total",
			Help: "Watches of a pool's objects that were opened again, by resource. API servers " +
				"end watches every few minutes, so a low rate is normal.",
		}, []string{"pool", "resource"})),
		errors: collectors.Once(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidefill_kubernetes_errors_total",
			Help: "Requests to the API server that failed, by resource and kind: unreachable; " +
				"forbidden or unauthorized (see docs/kubernetes.md for the permissions); " +
				"not_found; conflict; throttled; refused, with another status; other. The log " +
				"has the error.",
		}, []string{"pool", "resource", "kind"})),
		leader: collectors.Once(registerer, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tidefill_kubernetes_leader",
			Help: "1 while this daemon decides on replicas, because it holds the Lease " +
				"kubernetes.lease or needs none.",
		})),
		cpu: collectors.Once(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidefill_kubernetes_pod_cpu_cores",
			Help: "CPU that a pod uses, as metrics.k8s.io shows it " +
				"(pools[].kubernetes.metrics.resources).",
		}, []string{"pool", "pod"})),
		memory: collectors.Once(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidefill_kubernetes_pod_memory_bytes",
			Help: "Memory that a pod uses, as metrics.k8s.io shows it.",
		}, []string{"pool", "pod"})),
	}
	if registerer != nil {
		registerer.Unregister(&ageCollector{}) // of an earlier Cluster
		collectors.Once(registerer, &ageCollector{ages})
	}
	return g
}

// setResources publishes what the pods of a pool use. What is unknown is not shown.
func (g *gauges) setResources(pool string, readings readingsByPod) {
	set := func(gauge *prometheus.GaugeVec, pod string, v Value) {
		if !math.IsNaN(v.Value) {
			gauge.WithLabelValues(pool, pod).Set(v.Value)
		}
	}
	g.cpu.DeletePartialMatch(prometheus.Labels{"pool": pool})
	g.memory.DeletePartialMatch(prometheus.Labels{"pool": pool})
	for pod, r := range readings {
		set(g.cpu, pod, r.CPU)
		set(g.memory, pod, r.Memory)
	}
}

// forget removes what belongs to a pool.
func (g *gauges) forget(pool string) {
	of := prometheus.Labels{"pool": pool}
	g.restarts.DeletePartialMatch(of)
	g.errors.DeletePartialMatch(of)
	g.setResources(pool, nil)
}

// ageCollector exports the ages of states, which grow between two scrapes.
type ageCollector struct {
	ages func() map[string]time.Duration
}

var ageDescription = prometheus.NewDesc("tidefill_kubernetes_state_age_seconds",
	"How long ago the API server was last heard of by the watches of a pool, whose last state is "+
		"held; 0: they are open.", []string{"pool"}, nil)

// Describe implements prometheus.Collector.
func (c *ageCollector) Describe(ch chan<- *prometheus.Desc) { ch <- ageDescription }

// Collect implements prometheus.Collector.
func (c *ageCollector) Collect(ch chan<- prometheus.Metric) {
	for pool, age := range c.ages() {
		ch <- prometheus.MustNewConstMetric(ageDescription, prometheus.GaugeValue, age.Seconds(),
			pool)
	}
}
