package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Watched is a pool whose runners are found in Kubernetes.
type Watched struct {
	Name string
	PoolConfig
}

// Deps are what a Cluster works with.
type Deps struct {
	// Node identifies this daemon as the holder of the Lease. No other daemon may have the same.
	Node string
	// OnChange receives the state of a pool whenever it has changed. It is first called when all
	// that the pool consists of has been listed, so that unknown is never empty. Each pool has a
	// goroutine that calls it; it must not block. Nil: State has the states.
	OnChange func(State)
	Logger   *slog.Logger
	// Registerer registers the Cluster's own metrics. Nil: it has none.
	Registerer prometheus.Registerer
}

// Cluster reads pools from Kubernetes and acts on them. Its methods may be called concurrently.
type Cluster struct {
	cfg       Config
	deps      Deps
	log       *slog.Logger
	gauges    *gauges
	clients   *clients // nil: no pool is in Kubernetes
	followers map[string]*follower
	readers   readers
	reports   *reports // of what belongs to no pool
}

// New builds a Cluster; Run starts it. Pools without the section kubernetes are ignored. If there
// is no other, nothing is connected and New does not fail. Otherwise it fails if there is no
// cluster to connect to; it does not wait for the API server to answer.
func New(cfg Config, pools []Watched, deps Deps) (*Cluster, error) {
	if deps.Logger == nil {
		deps.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Cluster{cfg: cfg, deps: deps, log: deps.Logger.With("component", "kubernetes"),
		followers: map[string]*follower{}}
	c.gauges = newGauges(deps.Registerer, c.ages)
	c.reports = c.newReports("")
	var first string
	for _, p := range pools {
		if !p.IsZero() {
			first = p.Name
			break
		}
	}
	if first == "" {
		return c, nil
	}
	connected, err := connect(cfg)
	if err != nil {
		return nil, fmt.Errorf("find the runners of pool %s in Kubernetes: %w", first, err)
	}
	if c.readers, err = newReaders(connected); err != nil {
		return nil, fmt.Errorf("connect to the metrics APIs: %w", err)
	}
	return c, c.follow(connected, pools)
}

// follow makes a follower for each pool.
func (c *Cluster) follow(connected *clients, pools []Watched) error {
	c.clients = connected
	for _, p := range pools {
		if p.IsZero() {
			continue
		}
		if err := p.Validate(); err != nil {
			return fmt.Errorf("pool %s: kubernetes: %w", p.Name, err)
		}
		c.followers[p.Name] = newFollower(c, p.Name, p.withDefaults(connected.namespace))
	}
	return nil
}

// Enabled reports whether a pool is in Kubernetes.
func (c *Cluster) Enabled() bool { return c.clients != nil }

// Has reports whether a pool is in Kubernetes.
func (c *Cluster) Has(pool string) bool { return c.followers[pool] != nil }

// Run watches the pools until ctx is done.
func (c *Cluster) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, f := range c.followers {
		running.Go(func() { f.run(ctx) })
	}
	<-ctx.Done()
	running.Wait()
	return nil
}

// State returns the state of a pool. It returns false if the pool is not in Kubernetes, or has not
// been read yet; the error says why.
func (c *Cluster) State(pool string) (State, bool) {
	f, known := c.followers[pool]
	if !known {
		return State{Pool: pool, Desired: Unknown, Err: errors.New("the pool has no section " +
			"kubernetes")}, false
	}
	return f.state(time.Now())
}

// ages returns the age of each pool's state.
func (c *Cluster) ages() map[string]time.Duration {
	ages := make(map[string]time.Duration, len(c.followers))
	now := time.Now()
	for name, f := range c.followers {
		ages[name] = f.age(now)
	}
	return ages
}
