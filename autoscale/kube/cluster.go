package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
	cfg     Config
	deps    Deps
	log     *slog.Logger
	gauges  *gauges
	reports *reports // of what belongs to no pool
	running sync.WaitGroup

	mu        sync.RWMutex
	clients   *clients // nil: no pool has been in Kubernetes yet
	readers   readers
	followers map[string]*follower  // by pool
	runs      map[*follower]running // of those that have been started
	work      context.Context       // of Run; nil: it has not been called
}

// running is a follower that runs.
type running struct {
	cancel context.CancelFunc
	ended  <-chan struct{}
}

// end ends it, and waits until it has ended.
func (r running) end() {
	r.cancel()
	<-r.ended
}

// New builds a Cluster; Run starts it. Pools without the section kubernetes are ignored. If there
// is no other, nothing is connected and New does not fail. Otherwise it fails if there is no
// cluster to connect to; it does not wait for the API server to answer.
func New(cfg Config, pools []Watched, deps Deps) (*Cluster, error) {
	if deps.Logger == nil {
		deps.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Cluster{cfg: cfg, deps: deps, log: deps.Logger.With("component", "kubernetes"),
		followers: map[string]*follower{}, runs: map[*follower]running{}}
	c.gauges = newGauges(deps.Registerer, c.ages)
	c.reports = c.newReports("")
	follow, err := c.Prepare(pools)
	if err != nil {
		return nil, err
	}
	follow()
	return c, nil
}

// Prepare returns the function that replaces the pools. Pools that stay as they are, are watched
// on. One that has changed is unknown until it is listed again, and one that has gone is not
// reported after the function has returned. Prepare fails as New does, and then nothing changes.
func (c *Cluster) Prepare(pools []Watched) (follow func(), err error) {
	pools = slices.DeleteFunc(slices.Clone(pools), func(p Watched) bool { return p.IsZero() })
	for _, p := range pools {
		if err := p.Validate(); err != nil {
			return nil, fmt.Errorf("pool %s: kubernetes: %w", p.Name, err)
		}
	}
	connected := c.connected()
	var readers readers
	if connected == nil && len(pools) > 0 {
		if connected, err = connect(c.cfg); err != nil {
			return nil, fmt.Errorf("find the runners of pool %s in Kubernetes: %w", pools[0].Name,
				err)
		}
		if readers, err = newReaders(connected); err != nil {
			return nil, fmt.Errorf("connect to the metrics APIs: %w", err)
		}
	}
	return func() { c.follow(connected, readers, pools) }, nil
}

// follow makes a follower for each pool that has none, and ends those of other pools.
func (c *Cluster) follow(connected *clients, readers readers, pools []Watched) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clients == nil {
		c.clients, c.readers = connected, readers
	}
	before := c.followers
	c.followers = make(map[string]*follower, len(pools))
	for _, p := range pools {
		cfg := p.withDefaults(connected.namespace)
		f := before[p.Name]
		if f == nil || f.cfg != cfg {
			f = newFollower(c, p.Name, cfg)
		}
		c.followers[p.Name] = f
	}
	for name, f := range before {
		if r, runs := c.runs[f]; runs && c.followers[name] != f {
			r.end()
			delete(c.runs, f)
		}
		if c.followers[name] == nil {
			c.gauges.forget(name)
		}
	}
	c.start()
}

// start runs the followers that do not run yet, if Run has been called.
func (c *Cluster) start() {
	if c.work == nil || c.work.Err() != nil {
		return
	}
	for _, f := range c.followers {
		if _, runs := c.runs[f]; runs {
			continue
		}
		ctx, cancel := context.WithCancel(c.work)
		ended := make(chan struct{})
		c.runs[f] = running{cancel, ended}
		c.running.Go(func() {
			defer close(ended)
			f.run(ctx)
		})
	}
}

func (c *Cluster) connected() *clients {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.clients
}

// follower returns that of a pool; nil: the pool is not in Kubernetes.
func (c *Cluster) follower(pool string) *follower {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.followers[pool]
}

// Enabled reports whether a pool is in Kubernetes.
func (c *Cluster) Enabled() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.followers) > 0
}

// Has reports whether a pool is in Kubernetes.
func (c *Cluster) Has(pool string) bool { return c.follower(pool) != nil }

// Run watches the pools until ctx is done.
func (c *Cluster) Run(ctx context.Context) error {
	c.mu.Lock()
	c.work = ctx
	c.start()
	c.mu.Unlock()
	<-ctx.Done()
	c.mu.Lock() // a pool that is being added has started
	defer c.mu.Unlock()
	c.running.Wait()
	return nil
}

// State returns the state of a pool. It returns false if the pool is not in Kubernetes, or has not
// been read yet; the error says why.
func (c *Cluster) State(pool string) (State, bool) {
	f := c.follower(pool)
	if f == nil {
		return State{Pool: pool, Desired: Unknown, Err: errors.New("the pool has no section " +
			"kubernetes")}, false
	}
	return f.state(time.Now())
}

// ages returns the age of each pool's state.
func (c *Cluster) ages() map[string]time.Duration {
	c.mu.RLock()
	defer c.mu.RUnlock()
	ages := make(map[string]time.Duration, len(c.followers))
	now := time.Now()
	for name, f := range c.followers {
		ages[name] = f.age(now)
	}
	return ages
}
