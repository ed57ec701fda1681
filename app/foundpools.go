package app

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/registry"
)

// foundPools are the pools that documents of the registry describe, such as objects of Kubernetes.
type foundPools struct {
	any bool // there are some, or were; only reload uses it

	mu      sync.Mutex
	refused map[string]string // why a pool is not in use, by name
}

// why returns why a pool is not in use; empty: it is.
func (f *foundPools) why(pool string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refused[pool]
}

// problems lists why pools are not in use.
func (f *foundPools) problems() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(f.refused)) {
		all = append(all, fmt.Sprintf("registry: pool %s: %s", name, f.refused[name]))
	}
	return all
}

// withPools returns a configuration with the pools that documents describe, and the function that
// follows those in Kubernetes. A pool that can't be used is left out: others are not concerned.
func (a *App) withPools(cfg config.Config) (_ config.Config, follow func()) {
	var found []registry.Entry[registry.PoolManifest]
	if a.feed != nil {
		all, _ := a.feed.now()
		found = all.Pools()
	}
	if len(found) == 0 && !a.pools.any {
		return cfg, func() {}
	}
	a.pools.any = true
	next, refused := joinPools(cfg, found, nil)
	follow, err := a.kubernetes.prepare(next)
	if err != nil { // there is no cluster to connect to
		next, refused = joinPools(cfg, found, err)
		if follow, err = a.kubernetes.prepare(next); err != nil {
			follow = func() {} // nor was there for pools of the configuration
		}
	}
	a.pools.mu.Lock()
	defer a.pools.mu.Unlock()
	a.pools.refused = refused
	return next, follow
}

// joinPools adds pools to those of a configuration, and returns by name why others are left out.
// away is why pools in Kubernetes can't be followed; nil: they can.
func joinPools(
	cfg config.Config, found []registry.Entry[registry.PoolManifest], away error,
) (_ config.Config, refused map[string]string) {
	refused = map[string]string{}
	cfg.Pools, cfg.Upstreams = slices.Clone(cfg.Pools), slices.Clone(cfg.Upstreams)
	names, runners := map[string]bool{}, map[string]bool{}
	for _, p := range cfg.Pools {
		names[p.Name] = true
	}
	for _, u := range cfg.Upstreams {
		if name, err := u.Runner(); err == nil {
			runners[name] = true
		}
	}
	for _, e := range found {
		pool, upstreams := poolOf(e.Item)
		err := errors.Join(pool.Pool.Validate(), pool.Kubernetes.Validate())
		if names[pool.Name] {
			err = errors.New("the configuration has a pool of this name, which counts; rename one")
		}
		if !pool.Kubernetes.IsZero() && err == nil {
			err = away
		}
		for _, u := range upstreams {
			name, fault := u.Runner()
			if fault == nil && runners[name] {
				fault = fmt.Errorf("the endpoint %s is a runner of another pool; remove it there",
					u.URL)
			}
			err = errors.Join(err, fault)
		}
		if err != nil {
			refused[pool.Name] = inOneRow(err)
			continue
		}
		cfg.Pools = append(cfg.Pools, pool)
		cfg.Upstreams = append(cfg.Upstreams, upstreams...)
		for _, u := range upstreams {
			name, _ := u.Runner()
			runners[name] = true
		}
	}
	return cfg, refused
}

// poolOf returns the pool of a document as the configuration has pools.
func poolOf(m registry.PoolManifest) (p config.PoolConfig, upstreams []dispatch.Upstream) {
	p.Pool = m.Pool()
	s := m.Spec
	if len(s.Endpoints) == 0 {
		p.Kubernetes = kube.PoolConfig{Namespace: m.Namespace, Selector: s.Selector.String(),
			Port: s.Port, InferencePool: s.InferencePool}
	}
	for _, endpoint := range s.Endpoints {
		upstreams = append(upstreams, p.Upstream("", endpoint))
	}
	return p, upstreams
}
