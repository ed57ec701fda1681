package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/autoscale/driver"
	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/telemetry"
)

// kubernetes is the part of the daemon that finds runners in Kubernetes and acts on their pods.
// Nil: this process sends no lines.
type kubernetes struct {
	cluster *kube.Cluster
	changed chan struct{} // capacity 1: other runners were found

	mu       sync.Mutex
	found    map[string][]kube.Runner // by pool
	gateways map[string][]string      // names, by pool
	others   []telemetry.Runner       // engines that are read and not planned with

	sides sides
}

// newKubernetes connects to the cluster of the pools that are in Kubernetes, if there are any.
func (a *App) newKubernetes() (err error) {
	if !a.dispatches() {
		return nil
	}
	a.kubernetes = &kubernetes{changed: make(chan struct{}, 1), found: map[string][]kube.Runner{}}
	a.kubernetes.cluster, err = kube.New(a.cfg.Kubernetes, watchedPools(a.cfg),
		kube.Deps{Node: a.cfg.Node, OnChange: a.kubernetes.find, Logger: a.log,
			Registerer: a.options.Registry})
	return err
}

func watchedPools(cfg config.Config) (pools []kube.Watched) {
	for _, p := range cfg.Pools {
		pools = append(pools, kube.Watched{Name: p.Name, PoolConfig: p.Kubernetes})
	}
	return pools
}

// prepare returns the function that replaces the pools that are watched.
func (k *kubernetes) prepare(cfg config.Config) (follow func(), err error) {
	if k == nil {
		return func() {}, nil
	}
	replace, err := k.cluster.Prepare(watchedPools(cfg))
	if err != nil {
		return nil, err
	}
	return func() {
		replace()
		k.mu.Lock()
		defer k.mu.Unlock()
		maps.DeleteFunc(k.found, func(pool string, _ []kube.Runner) bool {
			return !k.cluster.Has(pool)
		})
	}, nil
}

// find takes over the runners of a pool.
func (k *kubernetes) find(state kube.State) {
	k.mu.Lock()
	k.found[state.Pool] = state.Runners
	k.mu.Unlock()
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// changes returns a channel that has a value when other runners were found.
func (k *kubernetes) changes() <-chan struct{} {
	if k == nil {
		return nil
	}
	return k.changed
}

// withFound returns a configuration with the upstreams that were found. Runners that drain are
// kept, so that their lines in flight go on. Those of a pool with separate prefill and decode are
// no upstreams: those of the side that is short are engines behind the gateways of the pool. While
// no pod of a side is ready, these get no lines.
func (k *kubernetes) withFound(cfg config.Config) config.Config {
	if k == nil {
		return cfg
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	cfg.Upstreams = slices.Clone(cfg.Upstreams)
	k.gateways, k.others = map[string][]string{}, nil
	for _, u := range cfg.Upstreams {
		if name, err := u.Runner(); err == nil && u.IsGateway() {
			k.gateways[u.Pool] = append(k.gateways[u.Pool], name)
		}
	}
	engines := map[string]side{}
	for _, p := range cfg.Pools {
		if p.Kubernetes.IsZero() { // no longer
			continue
		}
		pages := map[kube.Role][]string{}
		ready := map[kube.Role]int{}
		for _, r := range k.found[p.Name] {
			switch {
			case r.URL == "" || r.Phase == autoscale.Starting:
			case r.Role == kube.Both && p.Kubernetes.Prefill == "":
				u := p.Upstream(r.Name, r.URL)
				if r.MetricsPath != "" {
					u.Metrics = r.MetricsURL()
				}
				cfg.Upstreams = append(cfg.Upstreams, u)
			case r.Role != kube.Both:
				pages[r.Role] = append(pages[r.Role], r.MetricsURL())
				if r.Phase == autoscale.Ready {
					ready[r.Role]++
				}
			}
		}
		if _, known := k.found[p.Name]; !known || p.Kubernetes.Prefill == "" {
			continue
		}
		k.addSides(&cfg, p.Name, pages, engines)
		if ready[kube.Prefill] == 0 || ready[kube.Decode] == 0 {
			cfg.Upstreams = slices.DeleteFunc(cfg.Upstreams, func(u dispatch.Upstream) bool {
				return u.Pool == p.Name && u.IsGateway()
			})
		}
	}
	k.sides.set(engines)
	return cfg
}

// addSides adds the engines of the short side of a pool to its gateways, and notes those of the
// other side, which are read too.
func (k *kubernetes) addSides(
	cfg *config.Config, pool string, pages map[kube.Role][]string, engines map[string]side,
) {
	short := k.sides.shortOf(pool)
	for i := range cfg.Upstreams {
		u := &cfg.Upstreams[i]
		gateway, err := u.Runner()
		if err != nil || u.Pool != pool || !u.IsGateway() {
			continue
		}
		u.Engines = slices.Concat(u.Engines, pages[short])
		for role, of := range pages {
			for _, page := range of {
				engine, err := dispatch.EngineName(page)
				if err != nil {
					continue
				}
				name := dispatch.EngineRunner(gateway, engine)
				engines[name] = side{pool: pool, role: role}
				if role != short {
					k.others = append(k.others, telemetry.Runner{Name: name, Metrics: page})
				}
			}
		}
	}
}

// otherSides lists the engines that are read though flow control does not plan with them.
func (k *kubernetes) otherSides() []telemetry.Runner {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.others)
}

// observe takes over a reading of a runner.
func (k *kubernetes) observe(runner string, r *flowcontrol.Reading) {
	if k != nil && k.sides.observe(time.Now(), runner, r) {
		select {
		case k.changed <- struct{}{}:
		default:
		}
	}
}

// Knows implements driver.Replicas.
func (k *kubernetes) Knows(pool string) bool { return k.cluster.Has(pool) }

// Replicas implements driver.Replicas.
func (k *kubernetes) Replicas(pool string) ([]driver.Replica, error) {
	state, known := k.cluster.State(pool)
	if !known {
		return nil, fmt.Errorf("its pods are not known yet: %w", state.Err)
	}
	all := make([]driver.Replica, len(state.Replicas))
	for i, r := range state.Replicas {
		all[i].Replica = r
		for _, runner := range state.Runners {
			if runner.Pod == r.ID || runner.Name == r.ID {
				all[i].Runners = append(all[i].Runners, runner.Name)
			}
		}
	}
	return all, nil
}

// Order implements driver.Replicas.
func (k *kubernetes) Order(pool string) func(a, b string) int { return k.cluster.Order(pool) }

// Remove implements driver.Replicas: when the pool shrinks, the pods with the least cost go first.
func (k *kubernetes) Remove(ctx context.Context, pool string, replicas []string) error {
	costs := make(map[string]int, len(replicas))
	for i, id := range replicas { // the last one to be closed comes first
		costs[id] = -1 - i
	}
	return k.cluster.SetDeletionCosts(ctx, pool, costs)
}

// leased leaves the decisions about replicas to the daemon that holds the Lease, while one is
// needed because a pool is in Kubernetes.
type leased struct {
	*dispatch.Dispatcher
	needed func() bool
	held   atomic.Bool
}

// LeadScaling implements driver.Dispatcher.
func (l *leased) LeadScaling(ctx context.Context) (bool, error) {
	if l.needed() && !l.held.Load() {
		return false, nil
	}
	return l.Dispatcher.LeadScaling(ctx)
}

// competes reports whether this process is to hold the Lease if it can.
func (l *leased) competes() bool { return l.needed() && !l.StandsByForScaling() }

// leaseEvery is the time between two looks at whether this process stands by.
const leaseEvery = time.Second

// holdLease holds the Lease until ctx ends, as long as this process leads runners: what their lines
// do is known where they are sent.
func (k *kubernetes) holdLease(ctx context.Context, l *leased) error {
	tick := time.NewTicker(leaseEvery)
	defer tick.Stop()
	for {
		if l.competes() {
			if err := k.lead(ctx, l, tick.C); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// lead competes for the Lease until this process stands by, or none is needed.
func (k *kubernetes) lead(ctx context.Context, l *leased, tick <-chan time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- k.cluster.Lead(ctx, func(leading context.Context) error {
			l.held.Store(true)
			defer l.held.Store(false)
			<-leading.Done()
			return nil
		})
	}()
	for {
		select {
		case err := <-ended:
			return err
		case <-tick:
			if !l.competes() {
				cancel()
			}
		}
	}
}
