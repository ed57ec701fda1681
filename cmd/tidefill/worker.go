package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/dispatch/async"
	"github.com/tidefill/tidefill/store/redis"
)

// workerFlags are what a worker is configured with.
type workerFlags struct {
	redis  redis.Config
	worker async.WorkerConfig
	keyEnv string
	listen string
}

const (
	// workerConnections limits a worker's connections to Redis: one waits, and each request uses
	// one for a call.
	workerConnections = 64
	// workerTimeout limits a worker's calls of Redis. A body may be large.
	workerTimeout = 2 * time.Second
	// workerDial limits the time to connect to the engine.
	workerDial = 5 * time.Second
	// readHeader limits the time in which a client of the worker's address sends its header.
	readHeader = 5 * time.Second
)

func workerCommand() *cobra.Command {
	f := workerFlags{redis: redis.DefaultConfig()}
	f.redis.Timeout, f.worker.DialTimeout = workerTimeout, workerDial
	cmd := &cobra.Command{
		Use:   "worker --redis URL --runner NAME --engine URL",
		Short: "Take batch lines from a queue and send them to an engine",
		Long: `Take the lines of one runner from a queue in Redis, send them to the engine beside this process, and return its answers.

The daemon puts the lines there if their pool has send: async. The runner is an upstream of that pool, and the lines of a runner go to
the workers that name it. Several may; each line goes to one of them. docs/async.md describes the set-up.

The first interrupt ends taking: requests in progress end within --drain, and the others go back to the queue.`,
		Example: `  tidefill worker --redis redis://redis:6379 --runner gpu-1 --engine http://127.0.0.1:8000
  tidefill worker --redis rediss://tidefill@redis:6379 --redis-password-file /run/secrets/redis \
    --runner gpu-1 --engine http://127.0.0.1:8000 --concurrency 512 --listen :8082`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.validate(); err != nil {
				return exit{exitUsage, err}
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.redis.URL, "redis", "", "`URL` of Redis, as async.url of the daemon")
	flags.StringVar(&f.redis.PasswordEnv, "redis-password-env", "",
		"environment `variable` with its password")
	flags.StringVar(&f.redis.PasswordFile, "redis-password-file", "", "`file` with its password")
	flags.StringVar(&f.redis.CAFile, "redis-ca-file", "",
		"`file` of certificates by which its own is checked")
	flags.StringVar(&f.redis.Prefix, "redis-prefix", f.redis.Prefix,
		"`word` that begins all keys, as async.prefix of the daemon")
	flags.StringVar(&f.worker.Runner, "runner", "", "`name` of the upstream whose lines are taken")
	flags.StringVar(&f.worker.Engine, "engine", "", "`URL` of the engine")
	flags.StringVar(&f.keyEnv, "api-key-env", "",
		"environment `variable` with the engine's bearer token, if the daemon does not send it")
	flags.IntVar(&f.worker.Concurrency, "concurrency", 256, "`requests` in progress at once")
	flags.DurationVar(&f.worker.Drain, "drain", 30*time.Second,
		"`time` for requests in progress when the worker stops")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8082",
		"`address` of /healthz and /metrics; empty: none")
	return cmd
}

func (f *workerFlags) validate() error {
	var faults []error
	for flag, value := range map[string]string{"redis": f.redis.URL, "runner": f.worker.Runner,
		"engine": f.worker.Engine} {
		if value == "" {
			faults = append(faults, fmt.Errorf("--%s is missing", flag))
		}
	}
	if err := f.redis.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("--redis: %w", err))
	}
	if f.worker.Concurrency < 1 {
		faults = append(faults, fmt.Errorf("--concurrency is %d; give 1 or more",
			f.worker.Concurrency))
	}
	return errors.Join(faults...)
}

// run works until ctx ends.
func (f *workerFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	log := newLogger("text", slog.LevelInfo, stderr)
	if f.keyEnv != "" {
		if f.worker.APIKey = os.Getenv(f.keyEnv); f.worker.APIKey == "" {
			return fmt.Errorf("the environment variable %s, which --api-key-env names, is empty",
				f.keyEnv)
		}
	}
	client, err := redis.Client(f.redis, workerConnections)
	if err != nil {
		return err
	}
	defer client.Close()
	f.worker.Prefix = f.redis.Prefix
	registry := prometheus.NewRegistry()
	worker, err := async.NewWorker(f.worker, client, log, registry)
	if err != nil {
		return err
	}
	if f.listen != "" {
		stop, err := serveWorker(f.listen, worker, registry, stdout)
		if err != nil {
			return err
		}
		defer stop()
	}
	log.InfoContext(ctx, "working", "runner", f.worker.Runner, "concurrency", f.worker.Concurrency)
	err = worker.Run(ctx)
	log.InfoContext(ctx, "stopped")
	return err
}

// serveWorker serves /healthz and /metrics until stop is called.
func serveWorker(
	listen string, worker *async.Worker, metrics *prometheus.Registry, out io.Writer,
) (stop func(), err error) {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("listen for health checks: %w; set --listen", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := worker.Healthy(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: readHeader}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	fmt.Fprintf(out, "worker on http://%s\n", listener.Addr())
	return func() {
		_ = server.Close()
		<-ended
	}, nil
}
