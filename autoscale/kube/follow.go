package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// follower keeps the state of a pool current.
type follower struct {
	cluster *Cluster
	pool    string
	cfg     PoolConfig
	wake    chan struct{} // something has changed

	service       *mirror[service]       // nil: the pool has no Service
	slices        *mirror[slice]         // nil: as service
	inferencePool *mirror[inferencePool] // nil: the pool has no InferencePool
	target        *target                // nil: the pool has none
	composer      *composer
	reports       *reports

	mu     sync.Mutex
	pods   *podMirror // nil: the selector is not known yet
	next   *podMirror // takes the place of pods once it is listed; nil: none
	latest State
	known  bool // whether latest has been composed
}

// podMirror is the mirror of the pods of a selector.
type podMirror struct {
	*mirror[pod]
	selector string
	cancel   context.CancelFunc
}

func newFollower(c *Cluster, pool string, cfg PoolConfig) *follower {
	f := &follower{cluster: c, pool: pool, cfg: cfg, wake: make(chan struct{}, 1),
		composer: newComposer(pool, cfg), reports: c.newReports(pool)}
	switch {
	case cfg.Service != "":
		f.service = newMirror(f.source(c.clients.services(cfg)), newService, f.changed)
		f.slices = newMirror(f.source(c.clients.slices(cfg)), newSlice, f.changed)
	case cfg.InferencePool != "":
		f.inferencePool = newMirror(f.source(c.clients.inferencePools(cfg)), newInferencePool,
			f.changed)
	}
	if cfg.Target.Name != "" {
		f.target = &target{clients: c.clients, cfg: cfg}
	}
	return f
}

// changed wakes the follower.
func (f *follower) changed() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *follower) source(q query) *source {
	q.restart = f.cluster.gauges.restarts.WithLabelValues(f.pool, q.object.Resource).Inc
	q.timeout = RequestTimeout
	return newSource(q, func(o object, err error) { f.report(o.Resource, err) })
}

// report notes the fault of a resource; nil: there is none.
func (f *follower) report(resource string, err error) {
	f.reports.set(resource, err)
	f.changed()
}

// run keeps the state current until ctx is done.
func (f *follower) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	start := func(run func(context.Context)) { running.Go(func() { run(ctx) }) }
	if f.service != nil {
		start(f.service.run)
		start(f.slices.run)
	}
	if f.inferencePool != nil {
		start(f.inferencePool.run)
	}
	if f.target != nil {
		start(f.followTarget)
	}
	for {
		err := f.selectPods(ctx, &running)
		f.publish(err)
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		}
		select { // collect what changes together
		case <-ctx.Done():
			return
		case <-time.After(f.cluster.cfg.Settle):
		}
	}
}

// selectPods follows the pods that the pool's objects select now.
func (f *follower) selectPods(ctx context.Context, running *sync.WaitGroup) error {
	selector, err := f.selector()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next != nil && f.next.listed() {
		if f.pods != nil {
			f.pods.cancel()
		}
		f.pods, f.next = f.next, nil
	}
	newest := f.pods
	if f.next != nil {
		newest = f.next
	}
	if selector == "" || newest != nil && newest.selector == selector {
		return err
	}
	if f.next != nil {
		f.next.cancel()
	}
	following, cancel := context.WithCancel(ctx)
	pods := newMirror(f.source(f.cluster.clients.pods(f.cfg, selector)), newPod, f.changed)
	f.next = &podMirror{pods, selector, cancel}
	running.Go(func() { pods.run(following) })
	return err
}

// selector returns the selector of the pool's pods. Empty: it is not known, or a Service without a
// selector has none.
func (f *follower) selector() (string, error) {
	switch {
	case f.service != nil:
		s, exists, listed := f.service.one()
		if listed && !exists {
			return "", fmt.Errorf("%s does not exist; create it, or correct "+
				"pools[].kubernetes.service", f.service.source.query.object)
		}
		return labels.SelectorFromSet(s.selector).String(), nil
	case f.inferencePool != nil:
		p, exists, listed := f.inferencePool.one()
		switch o := f.inferencePool.source.query.object; {
		case !listed:
			return "", nil
		case !exists:
			return "", fmt.Errorf("%s does not exist; create it, or correct "+
				"pools[].kubernetes.inference_pool", o)
		case p.err != nil:
			return "", fmt.Errorf("%s: %w", o, p.err)
		}
		return labels.SelectorFromSet(p.selector).String(), nil
	}
	return f.cfg.Selector, nil
}

// objects returns the copies, and whether there is one of everything that the pool consists of.
func (f *follower) objects() (o objects, complete bool) {
	complete = true
	listed := func(is bool) { complete = complete && is }
	var is bool
	needsPods := true
	if f.service != nil {
		o.service, _, is = f.service.one()
		listed(is)
		o.slices, is = f.slices.get()
		listed(is)
		needsPods = len(o.service.selector) > 0
	}
	if f.inferencePool != nil {
		p, _, is := f.inferencePool.one()
		listed(is)
		o.ports = p.ports
	}
	if f.target != nil {
		o.target = f.target.get()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pods != nil {
		o.pods, is = f.pods.get()
		listed(is)
	} else {
		listed(!needsPods)
	}
	return o, complete
}

// publish composes the state and publishes it if it has changed. If the pool's objects can't be
// used, it holds the last one.
func (f *follower) publish(selection error) {
	o, complete := f.objects()
	f.mu.Lock()
	next, known := f.latest, f.known
	if complete && selection == nil {
		next, known = f.composer.compose(time.Now(), o), true
	} else {
		next.Err = selection
	}
	next.Err = errors.Join(append(f.reports.get(), next.Err)...)
	changed := known && (!f.known || !same(f.latest, next))
	f.latest, f.known = next, known
	f.mu.Unlock()
	if changed && f.cluster.deps.OnChange != nil {
		f.cluster.deps.OnChange(f.aged(next, time.Now()))
	}
}

func same(a, b State) bool {
	text := func(err error) string { return fmt.Sprint(err) }
	return a.Desired == b.Desired && text(a.Err) == text(b.Err) &&
		slices.Equal(a.Runners, b.Runners) && slices.Equal(a.Replicas, b.Replicas)
}

func (f *follower) state(now time.Time) (State, bool) {
	f.mu.Lock()
	latest, known := f.latest, f.known
	f.mu.Unlock()
	latest.Pool = f.pool
	if !known {
		latest.Desired = Unknown
	}
	return f.aged(latest, now), known
}

func (f *follower) aged(s State, now time.Time) State {
	s.Age = f.age(now)
	return s
}

// age returns the time since the API server was last heard of by the watch that has lost it first.
func (f *follower) age(now time.Time) time.Duration {
	var sources []*source
	if f.service != nil {
		sources = append(sources, f.service.source, f.slices.source)
	}
	if f.inferencePool != nil {
		sources = append(sources, f.inferencePool.source)
	}
	f.mu.Lock()
	if pods := cmp.Or(f.pods, f.next); pods != nil {
		sources = append(sources, pods.source)
	}
	f.mu.Unlock()
	var age time.Duration
	for _, s := range sources {
		if lost := s.lostAt(); !lost.IsZero() {
			age = max(age, now.Sub(lost))
		}
	}
	return age
}
