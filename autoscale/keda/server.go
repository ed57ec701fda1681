package keda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/internal/httpserver"
	"github.com/tidefill/tidefill/registry"
)

// Deps holds what a Server works with. All fields but Listener and Registerer are required. The
// functions answer from memory; they may be called concurrently.
type Deps struct {
	// Snapshot returns what was decided last. The error says why nothing is.
	Snapshot func() (*autoscale.Snapshot, error)
	// Changed returns a channel that is closed when a newer snapshot is there.
	Changed func() <-chan struct{}
	// Dispatching returns the work for dispatchers of a pool. The error says why it is not known.
	Dispatching func(pool string) (Dispatching, error)
	// Pools returns the configured pools.
	Pools func() []registry.Pool
	// Declare takes what a ScaledObject says of its pool, each time that it asks, and nothing once
	// it has not asked for Tuning.ForgetAfter.
	Declare func(pool string, of autoscale.Declaration)
	Logger  *slog.Logger
	// Registerer registers the metrics; nil: they are not registered.
	Registerer prometheus.Registerer
	// Listener serves instead of a new listener on Config.Listen. The Server closes it.
	Listener net.Listener
}

// Server is an external scaler of KEDA.
type Server struct {
	cfg          Config
	deps         Deps
	listener     net.Listener
	certificates *httpserver.Certificates // nil: without TLS
	scaler       *scaler
	health       *health.Server
	grpc         *grpc.Server
}

// Limits of a connection and of a message. All of KEDA's ScaledObjects share a connection.
const (
	mostStreams  = 100_000
	mostBytes    = 64 << 10
	mostHeaders  = 64 << 10
	connectTime  = 10 * time.Second
	drainTime    = 5 * time.Second
	checkEvery   = time.Second
	pingEvery    = time.Minute
	pingTimeout  = 20 * time.Second
	leastPinging = 10 * time.Second
)

// New listens. cfg must be valid, and name an address.
func New(cfg Config, deps Deps) (_ *Server, err error) {
	s := &Server{cfg: cfg, deps: deps, listener: deps.Listener, health: health.NewServer()}
	defer func() {
		if err != nil && s.listener != nil {
			err = errors.Join(err, s.listener.Close())
		}
	}()
	s.scaler = newScaler(cfg, deps)
	m, err := newMetrics(deps.Registerer, s.scaler.objects)
	if err != nil {
		return nil, err
	}
	watch := newObserver(m, deps.Logger, cfg.Tuning.CallLimit)
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(mostBytes), grpc.MaxHeaderListSize(mostHeaders),
		grpc.MaxConcurrentStreams(mostStreams), grpc.ConnectionTimeout(connectTime),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: cfg.Tuning.ConnectionAge,
			// Streams of KEDA end sooner by themselves, those of the health service do not.
			MaxConnectionAgeGrace: cfg.Tuning.ConnectionAge + connectTime,
			Time:                  pingEvery, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: leastPinging,
			PermitWithoutStream: true}),
		grpc.UnaryInterceptor(watch.unary), grpc.StreamInterceptor(watch.stream),
	}
	if files := cfg.files(); files.Enabled() {
		if s.certificates, err = httpserver.LoadCertificates(files); err != nil {
			return nil, err
		}
		options = append(options, grpc.Creds(handshake{
			credentials.NewTLS(s.certificates.Optional()), watch}))
	}
	s.grpc = grpc.NewServer(options...)
	externalscaler.RegisterExternalScalerServer(s.grpc, s.scaler)
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	s.setHealth()
	if s.listener == nil {
		if s.listener, err = net.Listen("tcp", cfg.Listen); err != nil {
			return nil, fmt.Errorf("listen for KEDA: %w", err)
		}
	}
	return s, nil
}

// Addr returns the address that is served.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close closes the listener of a server that is not run.
func (s *Server) Close() error {
	if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Run serves until ctx ends. Then it ends the streams as if they were complete, so that KEDA
// connects again without delay, and waits for the calls in progress.
func (s *Server) Run(ctx context.Context) error {
	var follower sync.WaitGroup
	defer follower.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	follower.Go(func() { s.scaler.watchers.follow(ctx, s.deps.Changed, s.scaler.answer) })
	served := make(chan error, 1)
	go func() { served <- s.grpc.Serve(s.listener) }()
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case err := <-served:
			close(s.scaler.stopped)
			s.grpc.Stop()
			return err
		case now := <-ticker.C:
			s.setHealth()
			s.scaler.objects.forget(now)
			s.reload(ctx)
		case <-ctx.Done():
			s.health.Shutdown()
			close(s.scaler.stopped)
			force := time.AfterFunc(drainTime, s.grpc.Stop)
			defer force.Stop() //nolint:gocritic // the loop ends here
			s.grpc.GracefulStop()
			return <-served
		}
	}
}

// setHealth reports whether calls can be answered.
func (s *Server) setHealth() {
	state := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if s.scaler.knows() {
		state = grpc_health_v1.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", state)
	s.health.SetServingStatus(externalscaler.ExternalScaler_ServiceDesc.ServiceName, state)
}

// reload reads the files of TLS again if they have changed.
func (s *Server) reload(ctx context.Context) {
	if s.certificates == nil {
		return
	}
	reloaded, err := s.certificates.Reload(false)
	if err != nil {
		s.deps.Logger.ErrorContext(ctx, "certificate files of the scaler refused; the last "+
			"version stays in use", "error", err)
	}
	if reloaded {
		s.deps.Logger.InfoContext(ctx, "certificate files of the scaler read again")
	}
}
