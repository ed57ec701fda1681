package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/live"
)

// Dispatcher is the part of dispatch.Dispatcher that the driver uses.
type Dispatcher interface {
	Survey(ctx context.Context) (plan.Survey, error)
	SetDraining(runners []string)
	SetClosed(pools []string)
	SetForecasts(by map[string]store.Forecast)

	LeadScaling(ctx context.Context) (bool, error)
	SaveStates(ctx context.Context, states []store.LearnedState) error
	States(ctx context.Context, kind string) ([]store.LearnedState, error)
}

// Deps holds what a Driver works with.
type Deps struct {
	Pools      []registry.Pool // at first; Configure replaces them
	Dispatcher Dispatcher
	Snapshots  live.Snapshots // of what was decided, for all processes
	// Flow returns the configuration of a pool's flow control, which says what is known of its
	// engine and what interactive users are promised.
	Flow func(pool registry.Pool) flowcontrol.Config
	// Replicas lists the replicas of pools. Those of pools that it does not know are the
	// upstreams that name the pool. Nil: it knows none.
	Replicas   Replicas
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: metrics are not registered
}

// Driver sets the number of replicas of each pool. All methods may be called concurrently.
type Driver struct {
	deps      Deps
	log       *slog.Logger
	declared  *declarations
	published *published
	metrics   *metrics
	traffic   *traffic
	poked     chan struct{} // capacity 1: step now
	questions chan question

	configured configured

	// Owned by Run.
	cfg     autoscale.Config
	pools   []registry.Pool
	fleet   *autoscale.Fleet
	leaving map[string]*leaving // by pool
	memory  *memory
	record  *record
	last    time.Time // of the last state; it never decreases
	failing bool      // the last decision failed, which is logged
}

// New returns a driver. Run starts it.
func New(cfg autoscale.Config, deps Deps) (*Driver, error) {
	d := &Driver{cfg: cfg, deps: deps, log: deps.Logger.With("component", "scaling"),
		published: newPublished(), traffic: newTraffic(), poked: make(chan struct{}, 1),
		questions: make(chan question),
		leaving:   map[string]*leaving{}, pools: deps.Pools,
		configured: configured{cfg: cfg, pools: deps.Pools}}
	d.declared = &declarations{byPool: map[string]autoscale.Declaration{}, changed: d.Poke}
	d.memory = &memory{dispatcher: deps.Dispatcher, snapshots: deps.Snapshots, log: d.log}
	d.record = newRecord(cfg)
	var err error
	if d.fleet, err = autoscale.NewFleet(cfg); err != nil {
		return nil, err
	}
	d.metrics, err = newMetrics(deps.Registerer)
	return d, err
}

// Poke brings the next decision forward, because something has changed.
func (d *Driver) Poke() {
	select {
	case d.poked <- struct{}{}:
	default:
	}
}

// Declare replaces what a ScaledObject says of a pool.
func (d *Driver) Declare(pool string, of autoscale.Declaration) { d.declared.set(pool, of) }

// Snapshot returns what was decided last. It fails with ErrUnknown before the first decision.
func (d *Driver) Snapshot() (*autoscale.Snapshot, error) {
	s, _, err := d.published.get()
	return s, err
}

// Changed returns a channel that is closed when a newer snapshot is there.
func (d *Driver) Changed() <-chan struct{} {
	_, changed, _ := d.published.get()
	return changed
}

// The state is looked at this often, so that a new batch or a lost replica is noticed soon. A
// process that does not decide looks for the snapshot of the one that does as often.
const lookEvery = 5 * time.Second

// loadEvery is the time between two looks at the state until it is loaded.
const loadEvery = time.Second

// minPause is the least time between two decisions, however much happens.
const minPause = 200 * time.Millisecond

// Run decides, and answers what is asked, until ctx ends.
func (d *Driver) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		d.wait(ctx, max(minPause, min(lookEvery, d.cfg.Step, d.once(ctx))))
	}
	if err := d.record.close(); err != nil {
		return fmt.Errorf("close the record of decisions: %w", err)
	}
	return nil
}

// wait answers questions until a time has passed or something has changed, but for minPause.
func (d *Driver) wait(ctx context.Context, length time.Duration) {
	least, end := time.After(minPause), time.After(length)
	var poked <-chan struct{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-end:
			return
		case <-least:
			poked = d.poked
		case <-poked:
			return
		case q := <-d.questions:
			q.answer <- d.preview(q)
		}
	}
}

// once decides, or publishes what the process that decides has published. It returns after what
// time the next decision is due.
func (d *Driver) once(ctx context.Context) time.Duration {
	asking, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	if err := d.takeOver(ctx); err != nil {
		d.note(ctx, err)
		return lookEvery
	}
	due := lookEvery
	leads, err := d.deps.Dispatcher.LeadScaling(asking)
	switch {
	case err != nil:
	case leads:
		var wake time.Time
		if wake, err = d.decide(asking); err == nil {
			due = time.Until(wake)
		}
	default:
		if d.memory.loaded { // what this process knew grows old while another decides
			d.memory.loaded = false
			d.deps.Dispatcher.SetForecasts(nil)
		}
		err = d.follow(asking)
	}
	d.note(ctx, err)
	if errors.Is(err, dispatch.ErrNotLoaded) || errors.Is(err, ErrUnknown) {
		return loadEvery
	}
	return due
}

// note logs the first of several errors.
func (d *Driver) note(ctx context.Context, err error) {
	switch {
	case err == nil:
		d.metrics.failing.Set(0)
		d.failing = false
	case ctx.Err() != nil:
	case errors.Is(err, ErrUnknown), errors.Is(err, dispatch.ErrNotLoaded):
		d.metrics.failing.Set(1)
	default:
		d.metrics.failing.Set(1)
		if !d.failing {
			d.log.WarnContext(ctx, "could not decide how many replicas the pools need, and when "+
				"batches will end, trying again; the last decision stays, and grows old", "error",
				err)
		}
		d.failing = true
	}
}
