package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/api/webhook"
	"github.com/tidefill/tidefill/app/console"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/inline"
	"github.com/tidefill/tidefill/internal/filewatch"
	"github.com/tidefill/tidefill/internal/httpserver"
	"github.com/tidefill/tidefill/internal/wallclock"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/buckets"
	"github.com/tidefill/tidefill/store/live"
	"github.com/tidefill/tidefill/store/places"
	"github.com/tidefill/tidefill/telemetry"
	"github.com/tidefill/tidefill/tracing"
)

// App is one daemon. New opens it; call Run once, or Close if it is not run.
type App struct {
	cfg     config.Config // at start; see running
	options Options
	log     *slog.Logger

	clock      *wallclock.Guard
	store      *store.Backend
	places     *places.Places // storages of profiles
	buckets    *buckets.Buckets
	check      storeCheck
	sharing    *sharing
	console    *console.Console
	dispatcher *dispatch.Dispatcher
	telemetry  atomic.Pointer[telemetry.Reader] // that reads now; nil: no lines are sent
	readers    chan *telemetry.Reader           // those that replace it
	ownPages   ownPages
	recording  *recording // nil: nothing is recorded
	scaling    *scaling
	feed       *registryFeed
	targets    *targets
	kubernetes *kubernetes // nil: no pool is in Kubernetes
	api        *api.Server
	inline     *inline.Proxy // nil: no interactive requests pass through
	leaders    leaders
	webhooks   *webhook.Notifier
	tracer     *tracing.Tracer // nil: traces are off
	keyless    bool            // the API requires no key
	keysFile   *filewatch.Files
	// signalsFile is that of telemetry.signals. Only reload uses it.
	signalsFile *filewatch.Files
	reloads     *reloads
	// running is the configuration that is applied now, as it was given: without what New fills in.
	running atomic.Pointer[config.Config]
	// effective is running with the runners that were found. Only reload uses it.
	effective config.Config
	found     foundRunners // only reload uses it
	pools     foundPools

	server, admin *httpserver.Server
	certificates  *httpserver.Certificates // nil: without TLS
	// adminListener nil: administration is not served
	listener, adminListener net.Listener
	draining                atomic.Bool
	registered              atomic.Bool // at least once, by present

	closers []func() error // in the order of opening; Close runs them in reverse
}

// New opens the store and listens. cfg must be valid, as config.Load returns it.
func New(cfg config.Config, options Options) (_ *App, err error) {
	options = options.withDefaults()
	a := &App{cfg: cfg, options: options, log: options.Logger,
		listener: options.Listener, adminListener: options.AdminListener,
		keysFile: filewatch.New(cfg.Auth.KeysFile), signalsFile: watched(cfg),
		readers: make(chan *telemetry.Reader), targets: newTargets()}
	a.running.Store(&cfg)
	a.effective = cfg
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	a.closeListeners()
	keys, err := a.loadKeys(cfg.Auth)
	if err != nil {
		return nil, err
	}
	a.keyless = keys.Empty()
	if a.reloads, err = newReloads(options); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	if err := registerBuild(options.Registry, options.Version); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	if a.cfg.Node, err = cfg.NodeName(); err != nil {
		return nil, err
	}
	if a.tracer, err = tracing.New(cfg.Tracing, options.Version, a.log); err != nil {
		return nil, err
	}
	a.onClose("traces", a.tracer.Close)
	if err := options.Registry.Register(spansCollector{a.tracer}); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	if err := a.awaitStore(); err != nil {
		return nil, err
	}
	a.share()
	if err := a.connect(keys); err != nil {
		return nil, err
	}
	a.follow()
	if err := errors.Join(a.registerReady(), a.registerSharing(),
		options.Registry.Register(registryCollector{a.feed, a.poolsNow})); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	if err := a.newServers(); err != nil {
		return nil, err
	}
	err = a.listen()
	return a, err
}

// onClose adds a step to Close, which takes the steps in reverse order.
func (a *App) onClose(object string, close func() error) {
	a.closers = append(a.closers, func() error {
		if err := close(); err != nil {
			return fmt.Errorf("close %s: %w", object, err)
		}
		return nil
	})
}

// Close releases what New opened. Run calls it at its end; a second call does nothing.
func (a *App) Close() error {
	var errs []error
	for len(a.closers) > 0 {
		last := len(a.closers) - 1
		errs = append(errs, a.closers[last]())
		a.closers = a.closers[:last]
	}
	return errors.Join(errs...)
}

// connect builds the dispatcher, the readings and the API over the opened store.
func (a *App) connect(keys *api.Keyring) (err error) {
	if a.recording, err = newRecording(a.cfg, a.log); err != nil {
		return err
	}
	if err := checkKeys(a.cfg.Upstreams); err != nil {
		return err
	}
	a.places = places.New(places.Options{SecretsDir: a.cfg.Registry.SecretsDir, Data: a.cfg.Data,
		Logger: a.log})
	a.onClose("storages of profiles", a.places.Close)
	a.buckets = buckets.New(func(s store.Storage, below string) buckets.Objects {
		return a.places.Shared(s, below)
	}, a.cfg.Buckets)
	queues, err := a.openQueues()
	if err != nil {
		return err
	}
	a.effective = a.targets.with(a.cfg, nil)
	settings := dispatchSettings(a.effective)
	a.dispatcher, err = dispatch.New(settings.Config, dispatch.Deps{
		Store: a.dispatchStore(), Places: a.places, Buckets: a.buckets,
		Queues: queues, Node: a.cfg.Node, Upstreams: settings.Upstreams,
		Scheduler: a.cfg.Scheduler, Registry: settings.Registry,
		Misplaced: a.store.Misplaced,
		Logger:    a.log, Expiry: a.clock.Expiry, Registerer: a.options.Registry,
		Tracer:  a.tracer,
		Away:    a.partAway,
		Watcher: a.recording.watcher(), OnPools: a.recording.onPools(),
		OnChanged:  func(batch string) { a.progressed(batch) },
		OnPosted:   func(batches []string) { a.progressed(batches...) },
		OnResigned: func() { a.sharing.Emit(live.Leading) },
		OnTargets:  a.targets.come,
	})
	if err != nil {
		return err
	}
	if err := a.newKubernetes(); err != nil {
		return err
	}
	reader, err := a.newReader(a.cfg)
	if err != nil {
		return err
	}
	a.telemetry.Store(reader)
	if err := a.newScaling(); err != nil {
		return err
	}
	if a.feed, err = newRegistryFeed(a.cfg, a.log); err != nil {
		return err
	}
	a.onClose("registry", a.feed.start(a.options.Stop))
	if err := a.newInline(); err != nil {
		return err
	}
	a.api, err = api.New(a.cfg.API, api.Deps{
		Inline: a.interactive(), Version: a.options.Version,
		Store: a.apiStore(), Places: a.places, Buckets: a.buckets,
		Outlook: &outlook{a.dispatcher, a.scaling.driver},
		Nudge:   a.changed, Models: a.models, Keys: keys,
		Catalogs: a.feed.now, UnservedModels: a.unservedModels, Windows: a.sharing,
		Older:  a.store.Older,
		Silent: a.silent, NotLed: a.notLed,
		Logger: a.log, Expiry: a.clock.Expiry, Registerer: a.options.Registry,
		Tracer: a.tracer,
	})
	if err != nil {
		return err
	}
	a.webhooks, err = webhook.New(a.cfg.Webhooks, webhook.Deps{Store: a.store.Records,
		Progress: a.store.Progress, Node: a.cfg.Node, Logger: a.log,
		Registerer: a.options.Registry})
	return err
}

// Run serves until ctx ends, and then drains as the configuration's section shutdown says. It also
// ends when a part fails, with the error of that part. It closes the App.
func (a *App) Run(ctx context.Context) error {
	parts, failing := errgroup.WithContext(context.WithoutCancel(ctx))
	work, stopWork := context.WithCancel(failing)
	defer stopWork()
	dispatched := make(chan struct{})

	parts.Go(func() error {
		defer close(dispatched)
		if !a.dispatches() {
			return named("batches", a.dispatcher.Watch(work))
		}
		return named("dispatcher", a.dispatcher.Run(work))
	})
	parts.Go(func() error {
		a.wake(work)
		return nil
	})
	parts.Go(func() error { return a.check.run(work, a.store, a.readRegistered) })
	if a.dispatches() {
		parts.Go(func() error { return named("pools", a.publish(work)) })
	} else {
		parts.Go(func() error { return named("registration", a.present(work)) })
	}
	if a.recording != nil {
		// The recording ends after the dispatcher, which records its last lines while it drains.
		recording, stop := context.WithCancel(context.WithoutCancel(ctx))
		parts.Go(func() error { return named("recording", a.recording.file.Run(recording)) })
		parts.Go(func() error {
			defer stop()
			<-dispatched
			return nil
		})
	}
	parts.Go(func() error { return named("telemetry", a.read(work)) })
	parts.Go(func() error {
		a.feed.run(work, statusView{writes: a.writesStatuses, pools: a.poolsNow,
			refused: a.pools.why})
		return nil
	})
	a.scaling.run(work, func(part string, run func() error) {
		parts.Go(func() error { return named(part, run()) })
	})
	parts.Go(func() error { return a.reload(work) })
	if a.servesAPI() {
		parts.Go(func() error { return named("api", a.api.Run(work)) })
		parts.Go(func() error { return named("webhooks", a.webhooks.Run(work)) })
		parts.Go(func() error { return named("api server", a.server.Serve(a.listener)) })
	}
	if a.adminListener != nil {
		parts.Go(func() error { return named("admin server", a.admin.Serve(a.adminListener)) })
	}
	if a.options.Ready != nil {
		parts.Go(func() error { return a.notifyReady(work) })
	}
	parts.Go(func() error {
		a.awaitEnd(ctx, failing)
		stopWork()
		var err error
		if a.servesAPI() {
			err = a.server.Shutdown(failing, a.running.Load().Shutdown.Drain)
		}
		<-dispatched
		return errors.Join(err, a.admin.Close())
	})
	a.log.InfoContext(ctx, "serving", "url", a.URL(), "admin", a.AdminURL(), "data", a.cfg.Data,
		"node", a.cfg.Node, "roles", a.cfg.Roles, "keys", a.api.Keys(),
		"version", a.options.Version)
	if a.dispatches() {
		a.logProtection(ctx, a.cfg)
	}
	err := errors.Join(parts.Wait(), a.Close())
	a.log.InfoContext(ctx, "stopped")
	return err
}

// awaitEnd returns when the servers shall refuse new requests: after the shutdown delay if ctx
// ends, at once if a part fails.
func (a *App) awaitEnd(ctx, failing context.Context) {
	select {
	case <-failing.Done():
		a.draining.Store(true)
		return
	case <-ctx.Done():
	}
	a.draining.Store(true)
	shutdown := a.running.Load().Shutdown
	a.log.Info("draining", "delay", shutdown.Delay, "drain", shutdown.Drain)
	select {
	case <-failing.Done():
	case <-time.After(shutdown.Delay):
	}
}

func named(part string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	return nil
}
