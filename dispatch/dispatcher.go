package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/dispatch/decision"
	"github.com/tidefill/tidefill/dispatch/finish"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/upstream"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/scheduler"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/buckets"
	"github.com/tidefill/tidefill/tracing"
)

// Deps holds what a dispatcher works with.
type Deps struct {
	Store
	Node      string // name of this process among those that share the store
	Upstreams []Upstream
	Scheduler scheduler.Config
	Registry  *registry.Snapshot // the pools, and the settings of flow control
	// Queues carries the requests of upstreams that are sent to through a queue. Nil: there are
	// none.
	Queues upstream.Queues
	// Places opens the storages of profiles. Nil: a batch with one does not end.
	Places finish.Places
	// Buckets finds the buckets that users may name. Nil: there are none.
	Buckets *buckets.Buckets
	Logger  *slog.Logger
	// Misplaced returns why the bytes that this process reaches are not those that the records
	// refer to; nil: they are. It leads nothing while they are not. Nil: they always are.
	Misplaced func(ctx context.Context) error
	// Expiry returns the time by which batches expire and journals are removed; nil: time.Now.
	Expiry func() time.Time
	// Registerer registers the metrics; nil: they are not registered.
	Registerer prometheus.Registerer
	// Away says in a sentence, for users, which part of the store is away; empty: none, as far as
	// is known. Nil: nothing is known.
	Away func() string
	// Tracer exports what happens to batches, chunks and lines. Nil: traces are off.
	Tracer *tracing.Tracer
	// Watcher receives the planner's events and actions; nil: nobody does.
	Watcher Watcher
	// OnPools receives the state of the pools each time it is published. The loop calls it, so it
	// must not block. Nil: nobody does.
	OnPools func(now time.Time, pools []plan.PoolStatus)
	// OnChanged receives a batch that this process has changed in the store. It must not block.
	// Nil: nobody does.
	OnChanged func(batch string)
	// OnPosted receives the batches of which progress was posted. It must not block. Nil: nobody
	// does.
	OnPosted func(batches []string)
	// OnTargets is called when Targets has changed. It must not block. Nil: nobody is notified.
	OnTargets func()
	// OnResigned is called when this process has given up all that it led. It must not block. Nil:
	// nobody is notified.
	OnResigned func()
}

// Watcher receives each event of a planner and the actions that it led to. The loop calls it, so it
// must not block. It must not keep the actions.
type Watcher interface {
	Step(now time.Time, ev plan.Event, did plan.Actions)
}

// Dispatcher runs the batches of a store against a set of upstreams.
type Dispatcher struct {
	deps     Deps
	log      *slog.Logger
	metrics  *metrics
	settings atomic.Pointer[settings]
	catalog  *catalog
	current  atomic.Pointer[session]
	ready    atomic.Bool
	obstacle atomic.Pointer[string] // of the last session; see Obstacle

	decisions *decision.History
	shown     *shownBatches
	totals    *plan.Totals
	targets   *targets
	draining  closings // runners
	closed    closings // pools
	forecasts forecasts

	watchNow  chan struct{} // capacity 1: Watch asks now
	notified  atomic.Bool   // changes of other processes are notified at present
	unwatched bool          // owned by Watch: it could not ask
}

// New returns a dispatcher. Run starts it.
func New(cfg Config, deps Deps) (*Dispatcher, error) {
	if !deps.Store.complete() {
		return nil, errors.New("dispatch: a field of Store is not set")
	}
	if deps.Expiry == nil {
		deps.Expiry = time.Now
	}
	if deps.Misplaced == nil {
		deps.Misplaced = func(context.Context) error { return nil }
	}
	if deps.Buckets == nil {
		deps.Buckets = buckets.New(nil, nil)
	}
	if deps.Away == nil {
		deps.Away = func() string { return "" }
	}
	if deps.OnChanged != nil {
		deps.Metadata = announcing{deps.Metadata, deps.OnChanged}
	}
	d := &Dispatcher{
		deps: deps, log: deps.Logger.With("component", "dispatch"),
		metrics:   newMetrics(deps.Registerer),
		decisions: decision.NewHistory(), shown: newShownBatches(),
		totals: plan.NewTotals(),
		targets: &targets{changed: deps.OnTargets, byBatch: map[string]string{},
			all: map[string]Target{}},
		draining: closings{event: runnerDrain}, closed: closings{event: poolClosed},
		watchNow: make(chan struct{}, 1),
	}
	made, err := newSettings(Settings{Config: cfg, Upstreams: deps.Upstreams,
		Scheduler: deps.Scheduler, Registry: deps.Registry}, &settings{}, deps.Store,
		deps.Queues)
	if err != nil {
		return nil, err
	}
	d.settings.Store(made)
	d.catalog = &catalog{settings: d.settings.Load, leads: deps.Metadata}
	return d, nil
}

func (d *Dispatcher) newPlanner() (*plan.Planner, error) {
	now := d.settings.Load()
	return plan.New(now.PlanConfig(), plan.Deps{
		Scheduler: now.Scheduler, Flow: now.Registry.FlowControl(),
		Random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), Totals: d.totals,
	})
}

// Run works until ctx is done and then drains: lines in flight may finish within Config.Drain, and
// are sent again after the next start otherwise.
func (d *Dispatcher) Run(ctx context.Context) error {
	defer d.ready.Store(false)
	for {
		err := d.session(ctx)
		earlier, obstacle := d.Obstacle(), obstacleOf(err)
		d.obstacle.Store(&obstacle)
		switch {
		case ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)):
			return nil
		case obstacle != "" && obstacle == earlier:
		case obstacle != "":
			d.log.ErrorContext(ctx, "leading nothing until this is mended", "node", d.deps.Node,
				"error", obstacle)
		case errors.Is(err, store.ErrFenced):
			// Another process took this node's name, or this one was suspended for longer than its
			// lease. Its claims are lost.
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

// obstacleOf returns what an operator must mend before a session can begin; empty: nothing.
func obstacleOf(err error) string {
	if taken, is := errors.AsType[*store.NameTaken](err); is {
		return taken.Error() + ": give each process a name of its own (--node), or stop one"
	}
	if errors.Is(err, errMisplaced) {
		return err.Error()
	}
	return ""
}

// Obstacle returns why this process leads nothing, if an operator must mend it; empty: it may lead.
func (d *Dispatcher) Obstacle() string {
	if obstacle := d.obstacle.Load(); obstacle != nil {
		return *obstacle
	}
	return ""
}

// Ready reports whether the dispatcher works and knows all batches of the store.
func (d *Dispatcher) Ready() bool { return d.ready.Load() }

// Nudge reports that a batch is new or has changed, so that it need not wait for the next poll.
func (d *Dispatcher) Nudge(batch string) {
	if s := d.current.Load(); s != nil {
		s.Batches.AddFirst(batch)
	}
}

// UnservedModels returns why a batch of these models can't run: a sentence for each model that no
// runner serves, as far as that is known now.
func (d *Dispatcher) UnservedModels(
	ctx context.Context, models []string,
) (sentences map[string]string, err error) {
	return d.catalog.unserved(ctx, models)
}

// Decisions returns what flow control saw and decided in the last hour.
func (d *Dispatcher) Decisions() *decision.History { return d.decisions }

// StandsByForScaling reports whether another process leads the runners of the pools that are
// scaled.
func (d *Dispatcher) StandsByForScaling() bool {
	s := d.current.Load()
	return s != nil && s.leading.StandsByFor(s.fleet.RunnersOf(
		d.settings.Load().Registry.ByModel()))
}

// SharesWithOthers reports whether other processes lead something that this one could.
func (d *Dispatcher) SharesWithOthers() bool {
	s := d.current.Load()
	return s != nil && s.leading.SharesWithOthers()
}

// StandsBy reports whether other processes lead all that this one could, so that it decides
// nothing.
func (d *Dispatcher) StandsBy() bool {
	s := d.current.Load()
	return s != nil && s.leading.StandsBy()
}

// AnswersStopped returns why answers of some jobs can't be kept, so that none of their lines start;
// plan.Flowing: there is space for all.
func (d *Dispatcher) AnswersStopped() plan.Reason {
	if s := d.current.Load(); s != nil {
		return s.rooms.Stopped()
	}
	return plan.Flowing
}

// Failures returns what the runners have failed in the last minutes: those that failed nothing are
// absent.
func (d *Dispatcher) Failures() []RunnerFailures {
	if s := d.current.Load(); s != nil {
		return s.progress.failures.all()
	}
	return nil
}

// Pools returns the state of the pools; nil before the first session.
func (d *Dispatcher) Pools() []plan.PoolStatus {
	if s := d.current.Load(); s != nil {
		if pools := s.progress.pools.Load(); pools != nil {
			return *pools
		}
	}
	return nil
}
