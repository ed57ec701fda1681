package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// listWatch is the part of a client that lists and watches. L is its type of lists.
type listWatch[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// newQuery returns the query for an object with a client; for all with the labels if the object has
// no name.
func newQuery[L runtime.Object](client listWatch[L], o object, labels string) query {
	return query{object: o, labels: labels, watch: client.Watch,
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		}}
}

func (c *clients) pods(cfg PoolConfig, selector string) query {
	return newQuery(c.typed.CoreV1().Pods(cfg.Namespace),
		object{Resource: "pods", Namespace: cfg.Namespace}, selector)
}

func (c *clients) configMap(namespace, name string) query {
	return newQuery(c.typed.CoreV1().ConfigMaps(namespace),
		object{Resource: "configmaps", Namespace: namespace, Name: name}, "")
}

func (c *clients) services(cfg PoolConfig) query {
	return newQuery(c.typed.CoreV1().Services(cfg.Namespace),
		object{Resource: "services", Namespace: cfg.Namespace, Name: cfg.Service}, "")
}

func (c *clients) slices(cfg PoolConfig) query {
	return newQuery(c.typed.DiscoveryV1().EndpointSlices(cfg.Namespace),
		object{Group: "discovery.k8s.io", Resource: "endpointslices", Namespace: cfg.Namespace},
		"kubernetes.io/service-name="+cfg.Service)
}

func (c *clients) inferencePools(cfg PoolConfig) query {
	resource := inferencePools(cfg.InferencePoolGroup)
	return newQuery(c.dynamic.Resource(resource).Namespace(cfg.Namespace),
		object{resource.Group, resource.Resource, cfg.Namespace, cfg.InferencePool}, "")
}

// target watches the metadata of a target, which show when its specification changes.
func (c *clients) target(cfg PoolConfig, resource schema.GroupVersionResource) query {
	return newQuery(c.metadata.Resource(resource).Namespace(cfg.Namespace),
		object{resource.Group, resource.Resource, cfg.Namespace, cfg.Target.Name}, "")
}
