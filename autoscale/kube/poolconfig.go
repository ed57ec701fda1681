package kube

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// PoolConfig sets how the runners of a pool are found in Kubernetes: by exactly one of Service,
// Selector and InferencePool.
type PoolConfig struct {
	// Service names a Service; the runners are the endpoints in its EndpointSlices.
	Service string `yaml:"service"`
	// Selector selects pods by their labels, such as app=vllm,tier!=test; each is a runner.
	Selector string `yaml:"selector"`
	// InferencePool names an InferencePool of the Gateway API Inference Extension; the runners are
	// the pods that it selects, at its target ports.
	InferencePool string `yaml:"inference_pool"`
	// InferencePoolGroup is the API group of the InferencePool: inference.networking.k8s.io (v1),
	// or inference.networking.x-k8s.io (v1alpha2). Default: inference.networking.k8s.io.
	InferencePoolGroup string `yaml:"inference_pool_group"`
	// Namespace is where the objects of the pool are. Default: kubernetes.namespace.
	Namespace string `yaml:"namespace"`
	// Port is the port of the runners, a number or a name: of the Service's ports, or of the
	// containers' with selector. An InferencePool has its own ports. Empty: the only port that
	// there is. Default: empty.
	Port string `yaml:"port"`
	// Scheme of the runners' URLs: http or https. Default: http.
	Scheme string `yaml:"scheme"`
	// Target is the object whose number of replicas an autoscaler sets. Without it replicas that
	// have no pod yet are not known, and no pod deletion cost is set.
	Target Target `yaml:"target"`
	// Prefill selects, among the pods of the pool, those that compute prompts, if others generate
	// tokens; decode selects these. Lines go to the router of the pool, an upstream with mode
	// gateway, and the pool is metered by the side that is short. Empty: every pod does both.
	// Default: empty.
	Prefill string `yaml:"prefill"`
	// Decode selects the pods that generate tokens; see prefill.
	Decode string `yaml:"decode"`
	// Metrics are read from the metrics APIs of Kubernetes, for runners whose own metrics page
	// can't be reached.
	Metrics Metrics `yaml:"metrics"`
}

// Target names an object with the subresource /scale.
type Target struct {
	// Kind of the object, such as Deployment or StatefulSet. Default: Deployment.
	Kind string `yaml:"kind"`
	// Name of the object. Empty: the pool has no target. Default: empty.
	Name string `yaml:"name"`
	// APIVersion of the kind, as in a manifest. Default: apps/v1.
	APIVersion string `yaml:"api_version"`
}

// Metrics names the metrics that signals of the pods are read from. An empty one is not read.
type Metrics struct {
	// Running counts the requests that a pod computes.
	Running Metric `yaml:"running"`
	// Waiting counts the requests that wait in a pod.
	Waiting Metric `yaml:"waiting"`
	// KVUsed is the used share of a pod's KV cache, 0 to 1.
	KVUsed Metric `yaml:"kv_used"`
	// Resources reads the pods' CPU and memory from metrics.k8s.io. Default: false.
	Resources bool `yaml:"resources"`
}

// Metric is a metric of the custom or of the external metrics API: one of Pods and External.
type Metric struct {
	// Pods names a metric of the custom metrics API (custom.metrics.k8s.io) that pods have.
	Pods string `yaml:"pods"`
	// External names a metric of the external metrics API (external.metrics.k8s.io).
	External string `yaml:"external"`
	// Selector selects series of an external metric by their labels. Empty: all. Default: empty.
	Selector string `yaml:"selector"`
	// PodLabel names the label of an external metric that holds the name of the pod. Series without
	// it are summed for the whole pool. Default: pod.
	PodLabel string `yaml:"pod_label"`
}

// The groups of InferencePool, and the version that is read of each.
const (
	inferenceGroup    = "inference.networking.k8s.io"
	oldInferenceGroup = "inference.networking.x-k8s.io"
)

// IsZero reports whether the pool's runners are not looked for in Kubernetes.
func (c PoolConfig) IsZero() bool { return c == PoolConfig{} }

// withDefaults fills in what the configuration leaves empty.
func (c PoolConfig) withDefaults(namespace string) PoolConfig {
	fill := func(s *string, value string) { *s = cmp.Or(*s, value) }
	fill(&c.Namespace, namespace)
	fill(&c.Scheme, "http")
	fill(&c.InferencePoolGroup, inferenceGroup)
	fill(&c.Target.Kind, "Deployment")
	fill(&c.Target.APIVersion, "apps/v1")
	for _, m := range c.Metrics.all() {
		fill(&m.PodLabel, "pod")
	}
	return c
}

// all returns the metrics in the order of Reading's values.
func (m *Metrics) all() [signals]*Metric {
	return [signals]*Metric{&m.Running, &m.Waiting, &m.KVUsed}
}

// Validate reports every fault with the path of its field. The zero value is valid.
func (c PoolConfig) Validate() error {
	if c.IsZero() {
		return nil
	}
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(format, args...))
	}
	c.validateDiscovery(fault)
	if c.Namespace != "" && !isLabel(c.Namespace) {
		fault("namespace: is %q, must be the name of a namespace: at most 63 lower-case letters, "+
			"digits and dashes", c.Namespace)
	}
	if c.Scheme != "" && c.Scheme != "http" && c.Scheme != "https" {
		fault("scheme: is %q, must be http or https", c.Scheme)
	}
	if c.Target.Name == "" && c.Target != (Target{}) {
		fault("target.name: is empty; name the %s, or remove target",
			cmp.Or(c.Target.Kind, "Deployment"))
	}
	if c.Target.Name != "" && !isName(c.Target.Name) {
		fault("target.name: is %q, must be the name of an object", c.Target.Name)
	}
	if (c.Prefill == "") != (c.Decode == "") {
		fault("decode: is %q and prefill %q; give both or none", c.Decode, c.Prefill)
	}
	for _, s := range []struct{ key, selector string }{
		{"prefill", c.Prefill}, {"decode", c.Decode},
	} {
		if _, err := labels.Parse(s.selector); err != nil {
			fault("%s: %w; write labels such as app=vllm", s.key, err)
		}
	}
	for i, m := range c.Metrics.all() {
		m.validate(func(format string, args ...any) {
			fault("metrics."+signalNames[i]+format, args...)
		})
	}
	return errors.Join(faults...)
}

func (c PoolConfig) validateDiscovery(fault func(string, ...any)) {
	ways := 0
	for _, way := range []string{c.Service, c.Selector, c.InferencePool} {
		if way != "" {
			ways++
		}
	}
	if ways != 1 {
		fault("service: %d of service, selector and inference_pool are set; set exactly one", ways)
	}
	if c.Service != "" && !isName(c.Service) {
		fault("service: is %q, must be the name of a Service", c.Service)
	}
	if c.InferencePool != "" && !isName(c.InferencePool) {
		fault("inference_pool: is %q, must be the name of an InferencePool", c.InferencePool)
	}
	if selector, err := labels.Parse(c.Selector); err != nil {
		fault("selector: %w; write labels such as app=vllm", err)
	} else if c.Selector != "" && selector.Empty() {
		fault("selector: is %q and selects every pod; write labels such as app=vllm", c.Selector)
	}
	switch c.InferencePoolGroup {
	case "", inferenceGroup, oldInferenceGroup:
	default:
		fault("inference_pool_group: is %q, must be %s or %s", c.InferencePoolGroup, inferenceGroup,
			oldInferenceGroup)
	}
	switch {
	case c.Port == "":
	case c.InferencePool != "":
		fault("port: is set, but an InferencePool has its own ports; remove port")
	case !isPort(c.Port):
		fault("port: is %q, must be a number from 1 to 65535 or the name of a port", c.Port)
	}
}

func (m *Metric) validate(fault func(string, ...any)) {
	if m.Pods != "" && m.External != "" {
		fault(".external: is set beside pods; remove one of them")
	}
	if m.External == "" && (m.Selector != "" || m.PodLabel != "") {
		fault(".external: is empty, so selector and pod_label have no effect; name a metric, or " +
			"remove them")
	}
	if _, err := labels.Parse(m.Selector); err != nil {
		fault(".selector: %w; write labels such as model=m", err)
	}
	for _, name := range []string{m.Pods, m.External} {
		if why := content.IsPathSegmentName(name); len(why) > 0 {
			fault(": %q can't be the name of a metric: it %s", name, strings.Join(why, ", "))
		}
	}
}

// isPort reports whether a text is the number or the name of a port. Names of a Service's ports are
// longer than those of containers.
func isPort(port string) bool {
	if number, err := strconv.Atoi(port); err == nil {
		return number >= 1 && number <= 65535
	}
	return len(validation.IsDNS1123Label(port)) == 0
}
