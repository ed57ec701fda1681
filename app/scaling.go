package app

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/autoscale/driver"
	"github.com/tidefill/tidefill/autoscale/keda"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/registry"
)

// scaling is the part of the daemon that sets the number of replicas of each pool.
type scaling struct {
	pools  atomic.Pointer[registry.Snapshot]
	since  time.Time
	driver *driver.Driver
	server *keda.Server // nil: KEDA is not served

	kubernetes *kubernetes // nil: this process sends no lines
	leased     *leased     // nil: this process takes no Lease
}

// newScaling builds the scaling of the configured pools.
func (a *App) newScaling() (err error) {
	pools := a.cfg.Snapshot()
	s := &scaling{since: time.Now(), kubernetes: a.kubernetes}
	s.pools.Store(pools)
	deps := driver.Deps{
		Pools: pools.Pools(), Dispatcher: scalingDispatcher{a.dispatcher, a},
		Snapshots: decisions{a},
		Flow: func(pool registry.Pool) flowcontrol.Config {
			return s.pools.Load().Flow(pool.Name, pool.Models)
		},
		Logger: a.log, Registerer: a.options.Registry,
	}
	if a.kubernetes != nil {
		deps.Replicas = a.kubernetes
	}
	if a.kubernetes != nil && a.scales() {
		s.leased = &leased{Dispatcher: a.dispatcher, needed: a.kubernetes.cluster.Enabled}
		deps.Dispatcher = scalingDispatcher{s.leased, a}
	}
	if s.driver, err = driver.New(a.cfg.Autoscale, deps); err != nil {
		return err
	}
	if a.cfg.Scaler.Listen != "" && a.scales() {
		s.server, err = keda.New(a.cfg.Scaler, keda.Deps{
			Snapshot: s.driver.Snapshot, Changed: s.driver.Changed,
			Dispatching: func(pool string) (keda.Dispatching, error) {
				return a.dispatching(s.pools.Load().Pools(), pool)
			},
			Pools:   func() []registry.Pool { return s.pools.Load().Pools() },
			Declare: s.driver.Declare, Logger: a.log.With("component", "scaler"),
			Registerer: a.options.Registry, Listener: a.options.ScalerListener,
		})
		if err != nil {
			return err
		}
		a.onClose("scaler", s.server.Close)
	}
	a.scaling = s
	return nil
}

// configure replaces what applies at run time.
func (s *scaling) configure(cfg config.Config) {
	pools := cfg.Snapshot()
	s.pools.Store(pools)
	s.driver.Configure(cfg.Autoscale, pools.Pools())
}

// withModels adds the models of pools that have no runner now: batches may ask for them.
func (s *scaling) withModels(models []api.ModelInfo) []api.ModelInfo {
	listed := map[string]bool{}
	for _, m := range models {
		listed[m.ID] = true
	}
	for _, p := range s.pools.Load().Pools() {
		for _, m := range p.Models {
			if !listed[m] {
				models = append(models, api.ModelInfo{ID: m, Created: s.since,
					OwnedBy: "tidefill"})
				listed[m] = true
			}
		}
	}
	return sortedModels(models)
}

func sortedModels(models []api.ModelInfo) []api.ModelInfo {
	slices.SortFunc(models, func(a, b api.ModelInfo) int { return cmp.Compare(a.ID, b.ID) })
	return models
}

// observe takes over a reading of a runner.
func (s *scaling) observe(runner string, r *flowcontrol.Reading) {
	if runner != "" {
		s.driver.Observe(runner, r)
	}
}

// run decides until work ends, and serves KEDA for as long.
func (s *scaling) run(work context.Context, start func(part string, run func() error)) {
	start("scaling", func() error { return s.driver.Run(work) })
	if s.kubernetes != nil {
		start("kubernetes", func() error { return s.kubernetes.cluster.Run(work) })
	}
	if s.leased != nil {
		start("lease", func() error { return s.kubernetes.holdLease(work, s.leased) })
	}
	if s.server != nil {
		start("scaler", func() error { return s.server.Run(work) })
	}
}

// ScalerAddr returns the address at which KEDA is served; empty: it is not.
func (a *App) ScalerAddr() string {
	if a.scaling.server == nil {
		return ""
	}
	return a.scaling.server.Addr().String()
}

// plansReplicas reports whether a pool is configured.
func (a *App) plansReplicas() bool { return len(a.running.Load().Pools) > 0 }
