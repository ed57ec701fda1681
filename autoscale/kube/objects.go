package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ownGroup is the API group of Tidefill's own resources.
const ownGroup = "tidefill.dev"

// The resources that Objects may follow, the versions that are preferred first.
var (
	useCaseSets = []schema.GroupVersionResource{
		{Group: ownGroup, Version: "v1alpha1", Resource: "usecasesets"}}
	ownPools = []schema.GroupVersionResource{
		{Group: ownGroup, Version: "v1alpha1", Resource: "pools"}}
	inferenceObjectives = []schema.GroupVersionResource{
		{Group: "llm-d.ai", Version: "v1alpha2", Resource: "inferenceobjectives"},
		{Group: oldInferenceGroup, Version: "v1alpha2", Resource: "inferenceobjectives"}}
)

const (
	// chooseEvery is the interval of looks at which of several versions the API server has.
	chooseEvery = 30 * time.Second
	// confirmations is the number of looks that must agree before another version is followed. An
	// API server that starts does not have its custom resources at once.
	confirmations = 3
)

// Documents are objects of a namespace that are documents of the registry.
type Documents struct {
	// Namespace is where they are. Empty: that of the daemon.
	Namespace string
	// UseCases follows the UseCaseSets of Tidefill and the InferenceObjectives.
	UseCases bool
	// Pools follows the Pools of Tidefill.
	Pools bool
}

// Objects is a copy of the objects of a resource, which Run keeps current. While the API server is
// away, it holds the last state. Its methods may be called concurrently.
type Objects struct {
	clients   *clients
	versions  []schema.GroupVersionResource // the one that is preferred first
	optional  bool                          // none of them need exist
	namespace string
	listed    chan struct{} // closed when it is known which objects there are
	known     func()        // closes listed, once

	mu      sync.Mutex
	version schema.GroupVersionResource // that is followed; zero: none
	copies  *mirror[document]           // nil: none is followed
	absent  bool                        // no version exists
	fault   error                       // the first one of its kind
}

// document is what is used of an object.
type document struct {
	text       string // a manifest without status, in JSON
	generation int64
	conditions []metav1.Condition
	observed   int64 // generation of the status
}

// NewObjects returns what follows the documents: the UseCaseSets, the InferenceObjectives and the
// Pools, as far as they are wanted. It fails if there is no cluster to connect to; it does not wait
// for the API server to answer.
func NewObjects(cfg Config, wanted Documents) (useCases, objectives, pools *Objects, err error) {
	connected, err := connect(cfg)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read use cases and pools: %w", err)
	}
	namespace := cmp.Or(wanted.Namespace, connected.namespace)
	if wanted.UseCases {
		useCases = newObjects(connected, namespace, false, useCaseSets)
		objectives = newObjects(connected, namespace, true, inferenceObjectives)
	}
	if wanted.Pools {
		pools = newObjects(connected, namespace, false, ownPools)
	}
	return useCases, objectives, pools, nil
}

func newObjects(
	c *clients, namespace string, optional bool, versions []schema.GroupVersionResource,
) *Objects {
	o := &Objects{clients: c, versions: versions, optional: optional, namespace: namespace,
		listed: make(chan struct{})}
	o.known = sync.OnceFunc(func() { close(o.listed) })
	return o
}

// String returns the resource that is followed and its namespace, such as usecasesets.tidefill.dev
// (v1alpha1) in namespace models.
func (o *Objects) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	of := o.version
	if of.Empty() {
		of = o.versions[0]
	}
	text := object{Group: of.Group, Resource: of.Resource, Namespace: o.namespace}.String()
	if o.absent {
		return text + " (not installed)"
	}
	return text + " (" + of.Version + ")"
}

// Listed returns a channel that is closed when it is known which objects there are.
func (o *Objects) Listed() <-chan struct{} { return o.listed }

// Run keeps the copy current until ctx is done.
func (o *Objects) Run(ctx context.Context) {
	var following sync.WaitGroup
	defer following.Wait()
	end := context.CancelFunc(func() {})
	defer func() { end() }()
	other := 0 // looks in a row that have shown another version
	for {
		chosen, err := o.choose()
		now := o.following()
		if other++; err != nil || chosen == now {
			other = 0
		}
		wait := chooseEvery
		if err != nil || chosen.Empty() || chosen != now {
			wait = lastRetry
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			o.report(object{}, err)
		case chosen == now, !now.Empty() && now != unchosen && other < confirmations:
		default:
			end()
			following.Wait()
			turn, cancel := context.WithCancel(ctx)
			end = cancel
			if copies := o.follow(chosen); copies != nil {
				following.Go(func() { copies.run(turn) })
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// unchosen stands for a version before the first look.
var unchosen = schema.GroupVersionResource{Resource: "?"}

// following returns the version that is followed; zero: there is none.
func (o *Objects) following() schema.GroupVersionResource {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.copies == nil && !o.absent {
		return unchosen
	}
	return o.version
}

// choose returns the first version that the API server has; zero: none.
func (o *Objects) choose() (of schema.GroupVersionResource, err error) {
	for _, version := range o.versions {
		list, err := o.clients.discovery.ServerResourcesForGroupVersion(
			version.GroupVersion().String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return of, fmt.Errorf("find out whether there are %s: %w", version.Resource, err)
		}
		for _, r := range list.APIResources {
			if r.Name == version.Resource {
				return version, nil
			}
		}
	}
	return of, nil
}

// follow makes a copy of the objects of a version; zero: there are none.
func (o *Objects) follow(version schema.GroupVersionResource) *mirror[document] {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.version, o.absent, o.fault, o.copies = version, version.Empty(), nil, nil
	if o.absent {
		if !o.optional {
			o.fault = fmt.Errorf("the API server has no %s; apply the custom resource definitions "+
				"of deploy/helm/tidefill/crds", schema.GroupResource{Group: o.versions[0].Group,
				Resource: o.versions[0].Resource})
		}
		o.known()
		return nil
	}
	q := newQuery(o.clients.dynamic.Resource(version).Namespace(o.namespace),
		object{Group: version.Group, Resource: version.Resource, Namespace: o.namespace}, "")
	q.restart, q.timeout = func() {}, RequestTimeout
	o.copies = newMirror(newSource(q, o.report), newDocument, o.known)
	return o.copies
}

// report notes the present fault; nil: there is none. Texts of one kind differ in ports alone.
func (o *Objects) report(_ object, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil || o.fault == nil || kindOf(err) != kindOf(o.fault) {
		o.fault = err
	}
}

// Read returns the manifests of the objects in JSON, by name, without their status. The error says
// why the copy may be old. Before listed is true there is no copy, and the error is not nil.
func (o *Objects) Read() (manifests map[string]string, listed bool, err error) {
	o.mu.Lock()
	copies, absent, fault := o.copies, o.absent, o.fault
	o.mu.Unlock()
	if copies == nil {
		if !absent {
			if fault == nil {
				fault = errNoAnswer
			}
		}
		return nil, absent, fault
	}
	all, listed := copies.get()
	manifests = make(map[string]string, len(all))
	for name, d := range all {
		manifests[name] = d.text
	}
	lost := copies.source.lostAt()
	if away := !lost.IsZero() && time.Since(lost) > answerWithin; fault == nil &&
		(away || !listed) {
		fault = errNoAnswer
	}
	return manifests, listed, fault
}

// SetCondition writes a condition into the status of an object, unless it has it already. An object
// that does not exist any more has none.
func (o *Objects) SetCondition(ctx context.Context, name string, c metav1.Condition) error {
	o.mu.Lock()
	copies, version := o.copies, o.version
	o.mu.Unlock()
	if copies == nil {
		return nil
	}
	all, _ := copies.get()
	d, exists := all[name]
	if !exists {
		return nil
	}
	conditions := append([]metav1.Condition(nil), d.conditions...)
	c.ObservedGeneration = d.generation
	if !meta.SetStatusCondition(&conditions, c) && d.observed == d.generation {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"observedGeneration": d.generation, "conditions": conditions}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	_, err = o.clients.dynamic.Resource(version).Namespace(o.namespace).Patch(ctx, name,
		types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "tidefill"}, "status")
	if apierrors.IsNotFound(err) {
		return nil
	}
	return object{version.Group, version.Resource + "/status", o.namespace, name}.explain("patch",
		err)
}

// newDocument returns what is used of an object.
func newDocument(o any) (d document) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return d
	}
	metadata := map[string]any{"name": u.GetName(), "namespace": u.GetNamespace(),
		"creationTimestamp": u.GetCreationTimestamp().UTC().Format(time.RFC3339)}
	text, err := json.Marshal(map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(),
		"metadata": metadata, "spec": u.Object["spec"]})
	d.text, d.generation = string(text), u.GetGeneration()
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	d.observed, _, _ = unstructured.NestedInt64(status, "observedGeneration")
	before, err2 := json.Marshal(status["conditions"])
	if err = errors.Join(err, err2); err == nil {
		_ = json.Unmarshal(before, &d.conditions) // what can't be read is written again
	}
	return d
}
