// Package demo runs a daemon in front of emulated runners and a sample batch through it.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/internal/httpserver"
	"github.com/tidefill/tidefill/runner/emulator"
)

const (
	model       = "demo-70b"
	runnerCount = 2
	drain       = 2 * time.Second // nobody waits for a demo to end

	// What users are promised if the configuration says nothing, on engines in real time.
	promisedFirst = 4 * time.Second
	promisedToken = 75 * time.Millisecond
)

// Demo is one run. All fields are required except where they say otherwise.
type Demo struct {
	// Config is the base of the daemon's configuration. The demo sets its addresses, upstreams,
	// node and data, and an objective if there is none, and serves without keys and TLS.
	Config config.Config
	// Listen and AdminListen are loopback addresses. If one is taken, the demo uses another port.
	Listen, AdminListen string
	// Data keeps everything. Empty: a temporary directory, which is removed at the end unless Once
	// is set.
	Data    string
	Lines   int     // of the sample batch
	Speedup float64 // of the emulated runners
	// Once ends the demo with the batch. Otherwise the daemon serves until the context ends.
	Once     bool
	Version  string
	Out      io.Writer
	Logger   *slog.Logger
	Progress func(client.Batch) // is called while the batch runs

	users     users
	promised  bool // users.promise is the demo's, since the configuration has none
	temporary bool // Data is removed at the end
}

// Run returns the batch when the demo has ended.
func (d *Demo) Run(ctx context.Context) (b client.Batch, err error) {
	if d.Data == "" {
		if d.Data, err = os.MkdirTemp("", "tidefill-demo-"); err != nil {
			return b, err
		}
		d.temporary = !d.Once // with Once, the printed names of results must stay valid
		if d.temporary {
			defer func() {
				if err = errors.Join(err, os.RemoveAll(d.Data)); err == nil {
					fmt.Fprintln(d.Out, "The demo has ended, and its data are removed.")
				}
			}()
		}
	}
	// The runners outlive the daemon, which has lines in flight at them.
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	runners, failing := errgroup.WithContext(alive)
	defer func() {
		stop()
		err = errors.Join(err, runners.Wait())
	}()
	cfg := d.Config
	cfg.Upstreams = nil
	for i := range runnerCount {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return b, fmt.Errorf("listen for an emulated runner: %w", err)
		}
		cfg.Upstreams = append(cfg.Upstreams, dispatch.Upstream{
			URL: "http://" + listener.Addr().String(), Name: fmt.Sprintf("gpu-%d", i+1)})
		runners.Go(func() error {
			return emulator.Serve(failing, d.runner(i, d.users.with.add), listener)
		})
		twin, err := emulator.New(d.runner(i, d.users.without.add))
		if err != nil {
			return b, err
		}
		runners.Go(func() error { return twin.Run(failing) })
	}
	if d.promised = cfg.FlowControl.SLO.Relative(); d.promised {
		cfg.FlowControl.SLO.TTFT, cfg.FlowControl.SLO.TPOT = d.emulated(promisedFirst),
			d.emulated(promisedToken)
	}
	d.users.promise = cfg.FlowControl.SLO
	cfg.Listen, cfg.AdminListen = d.free(d.Listen), d.free(d.AdminListen)
	cfg.Data, cfg.Node = d.Data, "demo"
	cfg.Shutdown.Drain = drain
	cfg.TLS, cfg.Auth = httpserver.TLSConfig{}, config.Auth{} // only this machine reaches it
	return d.serve(ctx, failing, cfg)
}

// serve runs the daemon, and the batch through it, until ctx ends, a runner fails or the demo has
// finished.
func (d *Demo) serve(
	ctx, failing context.Context, cfg config.Config,
) (b client.Batch, err error) {
	ready := make(chan struct{})
	daemon, err := app.New(cfg, app.Options{Logger: d.Logger, Version: d.Version,
		Ready: func() { close(ready) }})
	if err != nil {
		return b, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	context.AfterFunc(failing, stop)
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return daemon.Run(ctx) })
	parts.Go(func() (err error) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ready:
		}
		b, err = d.runBatch(ctx, daemon)
		if d.Once {
			stop()
		}
		return err
	})
	err = parts.Wait()
	return b, err
}

// emulated converts a time on a real engine to that on an emulated one.
func (d *Demo) emulated(real time.Duration) time.Duration {
	return time.Duration(float64(real) / d.Speedup)
}

// runner returns the configuration of an emulated runner with interactive traffic of its own, whose
// rate rises and falls within a minute.
func (d *Demo) runner(i int, served func(emulator.Served)) emulator.Config {
	c := emulator.DefaultConfig()
	c.Models = []string{model}
	c.RunnerID = fmt.Sprintf("gpu-%d", i+1)
	c.Seed = uint64(i + 1)
	c.Speedup = d.Speedup
	c.Interactive.RPS = 1
	c.Interactive.Swing = 0.8
	c.Interactive.Period = 60
	c.Served = served
	return c
}

// free returns the address if it is free; otherwise it prints that it is taken and returns the
// address with port 0.
func (d *Demo) free(address string) string {
	listener, err := net.Listen("tcp", address)
	if err == nil {
		listener.Close()
		return address
	}
	host, _, splitErr := net.SplitHostPort(address)
	if splitErr != nil {
		return address // the daemon reports the error
	}
	fmt.Fprintf(d.Out, "%s is taken; using another port.\n", address)
	return net.JoinHostPort(host, "0")
}
