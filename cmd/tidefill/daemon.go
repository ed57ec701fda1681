package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/internal/filewatch"
	"github.com/tidefill/tidefill/internal/httpserver"
	"github.com/tidefill/tidefill/internal/wallclock"
	"github.com/tidefill/tidefill/store/disk"
	"github.com/tidefill/tidefill/store/sqlite"
	"github.com/tidefill/tidefill/telemetry"
)

// daemon is the whole of Tidefill in one process: the store, the dispatcher and the two HTTP
// servers. openDaemon puts it together and listens, run works until it is told to stop.
type daemon struct {
	cfg      config.Config
	log      *slog.Logger
	registry *prometheus.Registry

	clock      *wallclock.Guard
	metadata   *sqlite.DB
	files      *disk.Store
	dispatcher *dispatch.Dispatcher
	probe      *telemetry.Probe // nil: nobody heeds readings
	record     *record          // nil: nothing is recorded
	api        *api.Server
	keyless    bool // the API asks for no key
	keysFile   *filewatch.Files

	server, admin           *httpserver.Server
	certificates            *httpserver.Certificates // nil: without TLS
	listener, adminListener net.Listener             // adminListener is nil if it isn't wanted
	draining                atomic.Bool
	hangup                  chan os.Signal // SIGHUP

	closers []func() error // last opened first
}

// openDaemon opens the store and listens. A daemon that was opened must run, or be closed.
func openDaemon(
	ctx context.Context, cfg config.Config, keys *api.Keyring, log *slog.Logger,
) (_ *daemon, err error) {
	d := &daemon{cfg: cfg, log: log, registry: newRegistry(), keyless: keys.Empty(),
		keysFile: filewatch.New(cfg.Auth.KeysFile)}
	d.heedHangup()
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	if err := d.openStore(ctx); err != nil {
		return nil, err
	}
	if err := d.wire(keys); err != nil {
		return nil, err
	}
	if err := d.newServers(); err != nil {
		return nil, err
	}
	return d, d.listen()
}

func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tidefill_build_info", Help: "1, labelled with the version that runs.",
			ConstLabels: prometheus.Labels{"version": version()},
		}, func() float64 { return 1 }),
	)
	return r
}

// closing remembers how to undo a step.
func (d *daemon) closing(what string, undo func() error) {
	d.closers = append(d.closers, func() error {
		if err := undo(); err != nil {
			return fmt.Errorf("close %s: %w", what, err)
		}
		return nil
	})
}

func (d *daemon) close() error {
	var faults []error
	for len(d.closers) > 0 {
		last := len(d.closers) - 1
		faults = append(faults, d.closers[last]())
		d.closers = d.closers[:last]
	}
	return errors.Join(faults...)
}

func (d *daemon) openStore(ctx context.Context) error {
	node, err := d.cfg.NodeName()
	if err != nil {
		return err
	}
	d.cfg.Node = node
	if d.files, err = disk.Open(d.cfg.Data, disk.Options{ReserveBytes: d.cfg.Storage.ReserveBytes,
		Logger: d.log}); err != nil {
		return err
	}
	d.closing("data directory", d.files.Close)
	release, err := d.files.Lock(node)
	if err != nil {
		return fmt.Errorf("data directory %s: %w", d.cfg.Data, err)
	}
	d.closing("node lock", release)
	if err := d.openMetadata(ctx); err != nil {
		return err
	}
	d.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tidefill_data_free_bytes",
		Help: "Room left where the data directory is; -1 if the system doesn't tell.",
	}, func() float64 {
		free, err := d.files.FreeBytes()
		if err != nil {
			return -1
		}
		return float64(free)
	}))
	return nil
}

func (d *daemon) wire(keys *api.Keyring) (err error) {
	d.cfg.Dispatch.Drain = d.cfg.Shutdown.Drain
	if d.record, err = d.newRecord(); err != nil {
		return err
	}
	d.dispatcher, err = dispatch.New(d.cfg.Dispatch, dispatch.Deps{
		Metadata: d.metadata, Blobs: d.files.Blobs(), Journals: d.files.Journals(), Spool: d.files,
		Node: d.cfg.Node, Upstreams: d.cfg.Upstreams,
		Scheduler: d.cfg.Scheduler, Flow: d.cfg.FlowControl,
		Logger: d.log, Expiry: d.clock.Expiry, Registerer: d.registry, Watcher: d.record.watcher(),
	})
	if err != nil {
		return err
	}
	if d.probe, err = d.newProbe(); err != nil {
		return err
	}
	d.api, err = api.New(d.cfg.API, api.Deps{
		Metadata: d.metadata, Blobs: d.files.Blobs(), Journals: d.files.Journals(),
		Nudge: d.dispatcher.Nudge, Models: d.models, Keys: keys,
		Logger: d.log, Expiry: d.clock.Expiry, Registerer: d.registry,
	})
	return err
}

// models tells the API what the dispatcher knows.
func (d *daemon) models() []api.ModelInfo {
	var models []api.ModelInfo
	for _, m := range d.dispatcher.Models() {
		models = append(models, api.ModelInfo{ID: m.ID, Created: m.Since, OwnedBy: "tidefill"})
	}
	return models
}

func (d *daemon) listen() (err error) {
	if d.listener, err = net.Listen("tcp", d.cfg.Listen); err != nil {
		return fmt.Errorf("listen for the API: %w", err)
	}
	d.closing("API listener", ignoreClosed(d.listener.Close))
	if d.cfg.AdminListen == "" {
		return nil
	}
	if d.adminListener, err = net.Listen("tcp", d.cfg.AdminListen); err != nil {
		return fmt.Errorf("listen for administration: %w; choose another admin_listen", err)
	}
	d.closing("admin listener", ignoreClosed(d.adminListener.Close))
	return nil
}

// ignoreClosed is for listeners, which the servers close too.
func ignoreClosed(close func() error) func() error {
	return func() error {
		if err := close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}

// url is where the API is reached from this machine.
func (d *daemon) url() string { return d.scheme() + reachable(d.listener.Addr()) }

func (d *daemon) scheme() string {
	if d.certificates != nil {
		return "https://"
	}
	return "http://"
}

// adminURL is where administration is reached; empty if it isn't served.
func (d *daemon) adminURL() string {
	if d.adminListener == nil {
		return ""
	}
	return d.scheme() + reachable(d.adminListener.Addr())
}

// reachable turns the address of all interfaces into one that can be dialled.
func reachable(address net.Addr) string {
	tcp := address.(*net.TCPAddr)
	if tcp.IP.IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	return tcp.String()
}

// run works until ctx ends, or until a part fails, which stops all others. It closes the daemon.
func (d *daemon) run(ctx context.Context) error {
	parts, failing := errgroup.WithContext(context.WithoutCancel(ctx))
	work, stopWork := context.WithCancel(failing)
	defer stopWork()
	dispatched := make(chan struct{})

	parts.Go(func() error {
		defer close(dispatched)
		return named("dispatcher", d.dispatcher.Run(work))
	})
	if d.record != nil {
		// It outlasts the dispatcher, which tells it of its last lines.
		recording, stop := context.WithCancel(context.WithoutCancel(ctx))
		parts.Go(func() error { return named("recording", d.record.file.Run(recording)) })
		parts.Go(func() error {
			defer stop()
			<-dispatched
			return nil
		})
	}
	if d.probe != nil {
		parts.Go(func() error { return named("probe", d.probe.Run(work)) })
	}
	parts.Go(func() error { return named("api", d.api.Run(work)) })
	parts.Go(func() error { return d.reload(work) })
	parts.Go(func() error { return named("api server", d.server.Serve(d.listener)) })
	if d.adminListener != nil {
		parts.Go(func() error { return named("admin server", d.admin.Serve(d.adminListener)) })
	}
	parts.Go(func() error {
		d.awaitEnd(ctx, failing)
		stopWork()
		err := d.server.Shutdown(failing, d.cfg.Shutdown.Drain)
		<-dispatched
		return errors.Join(err, d.admin.Close())
	})
	d.log.InfoContext(ctx, "serving", "url", d.url(), "admin", d.adminURL(), "data", d.cfg.Data,
		"node", d.cfg.Node, "version", version())
	err := errors.Join(parts.Wait(), d.close())
	d.log.InfoContext(ctx, "stopped")
	return err
}

// awaitEnd returns when it is time to refuse new work.
func (d *daemon) awaitEnd(ctx, failing context.Context) {
	select {
	case <-failing.Done():
		d.draining.Store(true)
		return
	case <-ctx.Done():
	}
	d.draining.Store(true)
	d.log.Info("draining", "delay", d.cfg.Shutdown.Delay, "drain", d.cfg.Shutdown.Drain)
	select {
	case <-failing.Done():
	case <-time.After(d.cfg.Shutdown.Delay):
	}
}

func named(part string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	return nil
}
