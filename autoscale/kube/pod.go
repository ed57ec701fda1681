package kube

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidefill/tidefill/autoscale"
)

// pod is what is used of a pod.
type pod struct {
	name      string
	uid       types.UID
	version   string // of the object
	labels    labels.Set
	addresses []string // the primary first
	ports     []port   // of all containers
	// metricsPath is where Prometheus would read its metrics; empty: nothing says so.
	metricsPath string

	ended     bool // it will not run again
	phase     autoscale.Phase
	since     time.Time // when the phase began; of a starting pod, when it was requested
	requested time.Time
	ready     time.Time // when it became ready; zero: it is not

	cost  string // its deletion cost; empty: none
	owner bool   // whether this program has set the cost
}

type port struct {
	name   string
	number int32
}

// pathAnnotation is the usual annotation of pods for the path of their metrics: TensorRT-LLM serves
// them at /prometheus/metrics.
const pathAnnotation = "prometheus.io/path"

// restarted is the time after a pod's start after which a loss of its readiness shows that it was
// ready before. Kubelets report not ready when they accept a pod, at its start.
const restarted = 30 * time.Second

func newPod(o any) pod {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return pod{ended: true}
	}
	x := pod{
		name: p.Name, uid: p.UID, version: p.ResourceVersion, labels: p.Labels,
		ended:     p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded,
		phase:     autoscale.Starting,
		requested: p.CreationTimestamp.Time,
		cost:      p.Annotations[corev1.PodDeletionCost],
		owner:     ownsCost(p),
	}
	if path := p.Annotations[pathAnnotation]; path != "" {
		x.metricsPath = "/" + strings.TrimPrefix(path, "/")
	}
	for _, ip := range p.Status.PodIPs {
		x.addresses = append(x.addresses, ip.IP)
	}
	if ip := p.Status.PodIP; ip != "" && !slices.Contains(x.addresses, ip) {
		x.addresses = slices.Insert(x.addresses, 0, ip)
	}
	// Sidecars that route requests are init containers.
	for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		for _, d := range c.Ports {
			if d.Protocol == "" || d.Protocol == corev1.ProtocolTCP {
				x.ports = append(x.ports, port{d.Name, d.ContainerPort})
			}
		}
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type != corev1.PodReady {
			continue
		}
		changed := condition.LastTransitionTime.Time
		switch {
		case condition.Status == corev1.ConditionTrue:
			x.phase, x.ready = autoscale.Ready, changed
		case p.Status.StartTime != nil && changed.Sub(p.Status.StartTime.Time) > restarted:
			x.requested = changed
		}
	}
	x.since = x.requested
	if x.phase == autoscale.Ready {
		x.since = x.ready
	}
	if p.DeletionTimestamp != nil {
		x.phase, x.since = autoscale.Draining, p.DeletionTimestamp.Time
		if grace := p.DeletionGracePeriodSeconds; grace != nil {
			x.since = x.since.Add(-time.Duration(*grace) * time.Second)
		}
	}
	return x
}

// sinceIn returns when a phase of the pod began that its endpoint is in.
func (p pod) sinceIn(phase autoscale.Phase) time.Time {
	if phase == autoscale.Starting {
		return p.requested
	}
	return p.since
}
