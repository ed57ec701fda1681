package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/registry"
)

// PoolConfig is a group of runners whose number of replicas is decided by deadlines.
type PoolConfig struct {
	registry.Pool `yaml:",inline"`
	// Kubernetes sets how the runners are found in Kubernetes. Empty: they are the upstreams that
	// name the pool.
	Kubernetes kube.PoolConfig `yaml:"kubernetes"`
	// Send is async if lines go through a queue in Redis, from which workers beside the engines
	// take them; see docs/async.md. Empty: lines are sent to the runners over HTTP.
	Send string `yaml:"send"`
	// Runners holds what upstreams would set for those that are found in Kubernetes.
	Runners Runners `yaml:"runners" config:"like=upstreams[]"`
}

// Runners are settings of upstreams that are found; see there.
type Runners struct {
	// APIKeyEnv names the environment variable that holds the bearer token. Empty: none is sent.
	APIKeyEnv string `yaml:"api_key_env"`
	// Headers are added to every request, besides the default X-Priority: low.
	Headers map[string]string `yaml:"headers"`
	// TenantHeader names a header that carries the name of a line's tenant. Empty: none does.
	TenantHeader string `yaml:"tenant_header"`
	// Dialect holds what some servers understand and others do not.
	Dialect dispatch.Dialect `yaml:"tuning"`
}

// Upstream returns a runner of the pool as an upstream. An empty url is that of no runner, to
// validate the settings.
func (p PoolConfig) Upstream(name, url string) dispatch.Upstream {
	return dispatch.Upstream{Name: name, URL: url, Pool: p.Name, APIKeyEnv: p.Runners.APIKeyEnv,
		Headers: p.Runners.Headers, TenantHeader: p.Runners.TenantHeader,
		Dialect: p.Runners.Dialect}
}

// Snapshot returns the pools and the settings of flow control as one snapshot.
func (c Config) Snapshot() *registry.Snapshot {
	pools := make([]registry.Pool, len(c.Pools))
	for i, p := range c.Pools {
		pools[i] = p.Pool
	}
	return registry.New(pools, c.FlowControl)
}

// checkFallbackName reports an upstream with the name that the fallback of a pool has.
func (c Config) checkFallbackName(path string, pool registry.Pool) error {
	for i, u := range c.Upstreams {
		if name, err := u.Runner(); err == nil && pool.Fallback.URL != "" &&
			name == pool.FallbackName() {
			return fmt.Errorf("upstreams[%d].name: is %q, the name of %s.fallback; give the "+
				"upstream another one", i, name, path)
		}
	}
	return nil
}

// hasPool reports whether pools has an entry with the name, or with a model of it.
func (c Config) hasPool(name string) bool {
	return slices.ContainsFunc(c.Pools, func(p PoolConfig) bool {
		return p.Name == name || slices.Contains(p.Models, name)
	})
}

// hasGateway reports whether an upstream is the gateway of a pool.
func (c Config) hasGateway(pool string) bool {
	return slices.ContainsFunc(c.Upstreams, func(u dispatch.Upstream) bool {
		return u.Pool == pool && u.IsGateway()
	})
}

// validatePools reports what is wrong with the pools and with the upstreams that name them.
func (c Config) validatePools() error {
	var faults []error
	names := make([]string, 0, len(c.Pools))
	listed := map[string]int{}
	for i, pool := range c.Pools {
		path := fmt.Sprintf("pools[%d]", i)
		faults = append(faults, section(path, pool.Pool.Validate()),
			emptyModels(path, pool.Models),
			c.validateSend(path, pool.Send),
			section(path+".kubernetes", pool.Kubernetes.Validate()),
			section(path+".runners", pool.Upstream("", "").Validate()),
			section(path+".fallback",
				dispatch.Upstream{Headers: pool.Fallback.Headers}.CheckHeaders()),
			c.checkFallbackName(path, pool.Pool))
		if first, twice := listed[pool.Name]; twice {
			faults = append(faults, fmt.Errorf("%s.name: pools[%d] is named %q too; give each "+
				"pool a name of its own", path, first, pool.Name))
			continue
		}
		if pool.Kubernetes.Prefill != "" && !c.hasGateway(pool.Name) {
			faults = append(faults, fmt.Errorf("%s.kubernetes.prefill: no upstream leads to the "+
				"pool; list its router in upstreams with mode: gateway and pool: %s", path,
				pool.Name))
		}
		listed[pool.Name] = i
		names = append(names, pool.Name)
	}
	for i, u := range c.Upstreams {
		if _, known := listed[u.Pool]; u.Pool != "" && !known {
			has := "pools has " + strings.Join(names, ", ")
			if len(names) == 0 {
				has = "list it in pools"
			}
			faults = append(faults, fmt.Errorf("upstreams[%d].pool: there is no pool %q; %s", i,
				u.Pool, has))
		}
	}
	if c.Scaler.Listen != "" && len(c.Pools) == 0 {
		faults = append(faults, errors.New("scaler.listen: there are no pools to scale; list them "+
			"in pools"))
	}
	return errors.Join(faults...)
}
