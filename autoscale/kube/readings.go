package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"
)

// Reading is what the metrics APIs of Kubernetes show of a pod or, without a pod, of a pool.
type Reading struct {
	Pod                      string
	Running, Waiting, KVUsed Value
	CPU, Memory              Value // cores and bytes
}

// Value is a measured value.
type Value struct {
	Value float64   // NaN: unknown
	At    time.Time // when it was measured; zero: unknown
}

// signals is the number of signals that metrics can be configured for.
const signals = 3

// signalNames are the names of the signals in telemetry.
var signalNames = [signals]string{"running", "waiting", "kv_used"}

func (r *Reading) all() [signals]*Value {
	return [signals]*Value{&r.Running, &r.Waiting, &r.KVUsed}
}

// readers are the clients of the metrics APIs.
type readers struct {
	custom    custom_metrics.CustomMetricsClient
	external  external_metrics.ExternalMetricsClient
	resources metricsclient.Interface
}

// newReaders builds the clients. They take no context, so their requests have a timeout.
func newReaders(c *clients) (readers, error) {
	pods := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{pods.GroupVersion()})
	mapper.Add(pods, meta.RESTScopeNamespace)
	external, err1 := external_metrics.NewForConfig(c.limited)
	resources, err2 := metricsclient.NewForConfig(c.limited)
	return readers{
		custom: custom_metrics.NewForConfig(c.limited, mapper,
			custom_metrics.NewAvailableAPIsGetter(c.discovery)),
		external: external, resources: resources,
	}, errors.Join(err1, err2)
}

// HasReadings reports whether metrics are configured for the pool.
func (c PoolConfig) HasReadings() bool {
	return !c.IsZero() && c.withDefaults("").Metrics != (PoolConfig{}).withDefaults("").Metrics
}

// Readings reads the configured metrics of a pool, by pod. What a metrics API does not show is
// unknown. If some can't be read, the others are returned with the error.
func (c *Cluster) Readings(ctx context.Context, pool string) ([]Reading, error) {
	f := c.follower(pool)
	if f == nil || !f.cfg.HasReadings() {
		return nil, nil
	}
	readings := readingsByPod{}
	var faults []error
	for i, m := range f.cfg.Metrics.all() {
		var err error
		switch {
		case m.Pods != "":
			err = f.readPods(m.Pods, i, readings)
		case m.External != "":
			err = f.readExternal(*m, i, readings)
		}
		faults = append(faults, err)
	}
	if f.cfg.Metrics.Resources {
		faults = append(faults, f.readResources(ctx, readings))
		c.gauges.setResources(pool, readings)
	}
	var all []Reading
	for _, pod := range slices.Sorted(maps.Keys(readings)) {
		all = append(all, *readings[pod])
	}
	if err := errors.Join(faults...); err != nil {
		return all, fmt.Errorf("read the metrics of pool %s: %w", pool, err)
	}
	return all, nil
}

type readingsByPod map[string]*Reading

// of returns the reading of a pod, in which all is unknown at first.
func (r readingsByPod) of(pod string) *Reading {
	if r[pod] == nil {
		unknown := Value{Value: math.NaN()}
		r[pod] = &Reading{Pod: pod, Running: unknown, Waiting: unknown, KVUsed: unknown,
			CPU: unknown, Memory: unknown}
	}
	return r[pod]
}

// newValue returns a value; a negative one is unknown.
func newValue(q resource.Quantity, at metav1.Time) Value {
	v := q.AsApproximateFloat64()
	if v < 0 {
		v = math.NaN()
	}
	return Value{v, at.Time}
}

// podSelector returns the selector of the pool's pods.
func (f *follower) podSelector() (labels.Selector, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pods == nil {
		return nil, errors.New("the pods of the pool are not known yet")
	}
	return labels.Parse(f.pods.selector)
}

func (f *follower) readPods(metric string, signal int, readings readingsByPod) error {
	selector, err := f.podSelector()
	if err != nil {
		return err
	}
	list, err := f.cluster.readers.custom.NamespacedMetrics(f.cfg.Namespace).GetForObjects(
		schema.GroupKind{Kind: "Pod"}, selector, metric, labels.Everything())
	if err != nil {
		return f.failed(object{"custom.metrics.k8s.io", "pods/" + metric, f.cfg.Namespace, ""},
			"get", err)
	}
	for _, v := range list.Items {
		*readings.of(v.DescribedObject.Name).all()[signal] = newValue(v.Value, v.Timestamp)
	}
	return nil
}

func (f *follower) readExternal(m Metric, signal int, readings readingsByPod) error {
	selector, err := labels.Parse(m.Selector)
	if err != nil {
		return err
	}
	list, err := f.cluster.readers.external.NamespacedMetrics(f.cfg.Namespace).List(m.External,
		selector)
	if err != nil {
		return f.failed(object{"external.metrics.k8s.io", m.External, f.cfg.Namespace, ""}, "list",
			err)
	}
	for _, v := range list.Items {
		value := readings.of(v.MetricLabels[m.PodLabel]).all()[signal]
		next := newValue(v.Value, v.Timestamp)
		if !math.IsNaN(value.Value) { // several series of a pod, or of the pool
			next.Value += value.Value
			if value.At.Before(next.At) {
				next.At = value.At
			}
		}
		*value = next
	}
	return nil
}

func (f *follower) readResources(ctx context.Context, readings readingsByPod) error {
	selector, err := f.podSelector()
	if err != nil {
		return err
	}
	list, err := f.cluster.readers.resources.MetricsV1beta1().PodMetricses(f.cfg.Namespace).List(
		ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return f.failed(object{"metrics.k8s.io", "pods", f.cfg.Namespace, ""}, "list", err)
	}
	for _, p := range list.Items {
		var cpu, memory resource.Quantity
		for _, c := range p.Containers {
			cpu.Add(*c.Usage.Cpu())
			memory.Add(*c.Usage.Memory())
		}
		if len(p.Containers) > 0 {
			r := readings.of(p.Name)
			r.CPU, r.Memory = newValue(cpu, p.Timestamp), newValue(memory, p.Timestamp)
		}
	}
	return nil
}

// failed counts and explains a request that has failed.
func (f *follower) failed(o object, verb string, err error) error {
	f.cluster.gauges.errors.WithLabelValues(f.pool, o.Resource, kindOf(err)).Inc()
	return o.explain(verb, err)
}
