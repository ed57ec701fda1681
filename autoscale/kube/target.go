package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// scale is what is used of a /scale subresource.
type scale struct {
	known    bool
	desired  int
	selector labels.Selector // of the target's pods
}

// target reads the /scale of a pool's target.
type target struct {
	clients *clients
	cfg     PoolConfig

	mu       sync.Mutex
	resource schema.GroupVersionResource // found out at the first read
	scale    scale
}

// object returns the target as error messages show it. Before its resource is found out, the kind
// in lower case stands for it.
func (t *target) object(subresource string) object {
	t.mu.Lock()
	defer t.mu.Unlock()
	version, _ := schema.ParseGroupVersion(t.cfg.Target.APIVersion)
	resource := t.resource.Resource
	if resource == "" {
		resource = strings.ToLower(t.cfg.Target.Kind)
	}
	return object{version.Group, resource + subresource, t.cfg.Namespace, t.cfg.Target.Name}
}

// resolve finds out the resource of the target's kind, and checks that it can be scaled.
func (t *target) resolve() (schema.GroupVersionResource, error) {
	t.mu.Lock()
	known := t.resource
	t.mu.Unlock()
	if known.Resource != "" {
		return known, nil
	}
	kind, version := t.cfg.Target.Kind, t.cfg.Target.APIVersion
	list, err := t.clients.discovery.ServerResourcesForGroupVersion(version)
	if apierrors.IsNotFound(err) {
		return known, fmt.Errorf("the API server has no API version %s; correct "+
			"pools[].kubernetes.target.api_version: %w", version, err)
	}
	if err != nil {
		return known, fmt.Errorf("list the resources of %s: %w", version, err)
	}
	var names []string
	for _, r := range list.APIResources {
		names = append(names, r.Name)
		if r.Kind == kind && !strings.Contains(r.Name, "/") {
			known.Resource = r.Name
		}
	}
	if known.Resource == "" {
		return known, fmt.Errorf("%s has no kind %s; correct pools[].kubernetes.target", version,
			kind)
	}
	if !slices.Contains(names, known.Resource+"/scale") {
		return schema.GroupVersionResource{}, fmt.Errorf("%s %s has no subresource /scale, so its "+
			"replicas can't be read or set; name a Deployment, a StatefulSet or another object "+
			"that has it in pools[].kubernetes.target", kind, t.cfg.Target.Name)
	}
	parsed, err := schema.ParseGroupVersion(version)
	if err != nil {
		return known, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.resource = parsed.WithResource(known.Resource)
	return t.resource, nil
}

// read reads the /scale of the target.
func (t *target) read(ctx context.Context) error {
	resource, err := t.resolve()
	if err != nil {
		return err
	}
	u, err := t.clients.dynamic.Resource(resource).Namespace(t.cfg.Namespace).Get(ctx,
		t.cfg.Target.Name, metav1.GetOptions{}, "scale")
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s does not exist; create it, or correct pools[].kubernetes.target: %w",
			t.object(""), err)
	}
	if err != nil {
		return t.object("/scale").explain("get", err)
	}
	read, err := newScale(u)
	if err != nil {
		return fmt.Errorf("read %s: %w", t.object("/scale"), err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.scale = read
	return nil
}

func newScale(u *unstructured.Unstructured) (scale, error) {
	// An object without spec.replicas has the number 0 in its Scale, which JSON leaves out.
	replicas, _, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if err != nil {
		return scale{}, err
	}
	text, _, err := unstructured.NestedString(u.Object, "status", "selector")
	if err != nil {
		return scale{}, err
	}
	selector, err := labels.Parse(text) // empty selects all
	if err != nil {
		return scale{}, err
	}
	return scale{known: true, desired: int(replicas), selector: selector}, nil
}

func (t *target) get() scale {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.scale
}
