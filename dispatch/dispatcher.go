package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/scheduler"
	"github.com/tidefill/tidefill/store"
)

// Deps is what a dispatcher works with.
type Deps struct {
	Store
	Node      string // name of this process among those that share the store
	Upstreams []Upstream
	Scheduler scheduler.Config
	Flow      flowcontrol.Config
	Logger    *slog.Logger
	// Expiry is the time by which batches expire and journals are removed; nil: time.Now.
	Expiry func() time.Time
	// Registerer takes the metrics; nil: none are kept.
	Registerer prometheus.Registerer
	// Watcher hears of all that the planner is told; nil: nobody does.
	Watcher Watcher
}

// Watcher hears of each event of a planner and what it led to. The loop calls it: it must not
// block, nor keep the actions.
type Watcher interface {
	Step(now time.Time, ev plan.Event, did plan.Actions)
}

// Dispatcher runs the batches of a store against a set of upstreams.
type Dispatcher struct {
	cfg       Config
	deps      Deps
	log       *slog.Logger
	metrics   *metrics
	upstreams map[string]*upstream
	current   atomic.Pointer[session]
	ready     atomic.Bool
}

// New builds a dispatcher; Run starts it.
func New(cfg Config, deps Deps) (*Dispatcher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("dispatch: %w", err)
	}
	if err := cfg.checkDurability(deps.Journals.Durability()); err != nil {
		return nil, fmt.Errorf("dispatch: %w", err)
	}
	if deps.Expiry == nil {
		deps.Expiry = time.Now
	}
	d := &Dispatcher{
		cfg: cfg, deps: deps, log: deps.Logger.With("component", "dispatch"),
		metrics: newMetrics(deps.Registerer), upstreams: map[string]*upstream{},
	}
	for _, u := range deps.Upstreams {
		up, err := newUpstream(cfg, u, deps.Spool)
		if err != nil {
			return nil, err
		}
		if _, taken := d.upstreams[up.name]; taken {
			return nil, fmt.Errorf("upstreams: two are named %q; give each a name of its own",
				up.name)
		}
		d.upstreams[up.name] = up
	}
	if _, err := d.newPlanner(); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *Dispatcher) newPlanner() (*plan.Planner, error) {
	return plan.New(d.cfg.PlanConfig(), plan.Deps{
		Scheduler: d.deps.Scheduler, Flow: d.deps.Flow,
		Random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	})
}

// Run works until ctx is done and then drains: lines under way may finish within Config.Drain, the
// rest is put back.
func (d *Dispatcher) Run(ctx context.Context) error {
	defer d.ready.Store(false)
	for {
		err := d.session(ctx)
		switch {
		case ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)):
			return nil
		case errors.Is(err, store.ErrFenced):
			// Another process took this node's name, or this one slept longer than its lease. What
			// it held is others' now.
			d.log.WarnContext(ctx, "lost the lease, registering again", "node", d.deps.Node,
				"error", err)
		case err != nil && ctx.Err() != nil:
			return err
		case err != nil:
			d.log.ErrorContext(ctx, "dispatching stopped, trying again", "error", err)
		}
		d.ready.Store(false)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// Ready reports whether the dispatcher has taken over what the store holds and works.
func (d *Dispatcher) Ready() bool { return d.ready.Load() }

// Nudge says that a batch is new or changed, so that nobody has to wait for the next poll.
func (d *Dispatcher) Nudge(batch string) {
	if s := d.current.Load(); s != nil {
		s.reconciler.queue.addFirst(batch)
	}
}

// Read passes on what a look at a runner's metrics showed or, where runner is empty, at those of
// the gateway before the pools of a model; of all pools, where model is empty too. Nobody may write
// to the reading any more.
func (d *Dispatcher) Read(runner, model string, r *flowcontrol.Reading) {
	if s := d.current.Load(); s != nil {
		s.loop.inbox.put(plan.Reading{Runner: runner, Model: model, Reading: r})
	}
}

// ModelInfo says who serves a model.
type ModelInfo struct {
	ID      string
	Runners []string
	Since   time.Time // first seen
}

// Models lists what the upstreams serve, by name.
func (d *Dispatcher) Models() []ModelInfo { return modelsOf(d.upstreams) }

// Pools tells how the pools stand; empty before the first session.
func (d *Dispatcher) Pools() []plan.PoolStatus {
	if s := d.current.Load(); s != nil {
		if pools := s.progress.pools.Load(); pools != nil {
			return *pools
		}
	}
	return nil
}
