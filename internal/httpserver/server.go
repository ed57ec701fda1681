package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
	// maxStreams bounds the requests at once on an HTTP/2 connection.
	maxStreams = 32
	// frameBytes bounds an HTTP/2 frame, the least that a client may be held to. One is read whole
	// into memory, before any key is asked for.
	frameBytes = 16 << 10
	// streamBytes is what is held of the body of an HTTP/2 request while its handler does not read,
	// for its turn to come say. Over HTTP/1.1 the system holds that.
	streamBytes = 64 << 10
)

// Options are the traits of one server, apart from what the operator configures.
type Options struct {
	// HalfClose answers clients that close their sending side after a request. Otherwise that ends
	// the request, as when a client is gone.
	HalfClose bool
	// CheckHost answers only hosts that can't be a name which somebody else points here: for
	// servers that ask for no key.
	CheckHost bool
	// RefuseCrossSite refuses all requests from web pages of other sites, not only those that
	// change something.
	RefuseCrossSite bool
	// TLS secures the server; nil: it serves in clear.
	TLS *tls.Config

	Logger     *slog.Logger          // nil: none
	Registerer prometheus.Registerer // nil: metrics are counted and shown nowhere
}

// Server serves one handler under the bounds of a Config.
type Server struct {
	config      Config
	options     Options
	http        *http.Server
	connections *connections
	metrics     *metrics
	log         *slog.Logger

	base context.Context // of requests that outlive their connection's; ends at Close
	end  context.CancelFunc
}

// New returns a server of handler. Config must be valid; its zero value bounds no connections.
func New(config Config, handler http.Handler, options Options) (*Server, error) {
	s := &Server{config: config, options: options, log: options.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.base, s.end = context.WithCancel(context.Background())
	s.connections = &connections{
		most: config.MaxConnections, perAddress: config.MaxConnectionsPerAddress,
		counts: make(map[netip.Addr]int),
	}
	for _, proxy := range config.Proxies {
		prefix, err := parsePrefix(proxy)
		if err != nil {
			return nil, fmt.Errorf("proxy %s: %w", proxy, err)
		}
		s.connections.proxies = append(s.connections.proxies, prefix)
	}
	var err error
	if s.metrics, err = newMetrics(options.Registerer, s.connections); err != nil {
		return nil, fmt.Errorf("register http metrics: %w", err)
	}
	guard, err := newGuard(config, options)
	if err != nil {
		return nil, err
	}
	s.http = &http.Server{
		Handler:           s.counting(s.exchanging(guard.guarding(handler))),
		TLSConfig:         options.TLS,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         s.connections.changed,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReadFrameSize:              frameBytes,
			MaxReceiveBufferPerConnection: 4 * streamBytes,
			MaxReceiveBufferPerStream:     streamBytes,
			SendPingTimeout:               idleTimeout,
			WriteByteTimeout:              config.Grace,
		},
		// clients that break off, mostly
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// counting counts requests that share a connection.
func (s *Server) counting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 1 {
			next.ServeHTTP(w, r)
			return
		}
		end, full := s.connections.begin(r.RemoteAddr)
		if full != admitted {
			s.metrics.refuse(full)
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusServiceUnavailable, "server_error", "busy",
				"The server has too many requests under way; try again.")
			return
		}
		defer end()
		next.ServeHTTP(w, r)
	})
}

// Serve serves the connections of a listener until Shutdown or Close, which is no error.
func (s *Server) Serve(inner net.Listener) error {
	l := &listener{
		Listener: inner, connections: s.connections, metrics: s.metrics, log: s.log,
		plain: s.options.TLS == nil, lingering: make(chan struct{},
			refusals(s.connections.most, OpenFiles())),
	}
	defer l.running.Wait()
	var err error
	if s.options.TLS != nil {
		err = s.http.ServeTLS(l, "", "")
	} else {
		err = s.http.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// OnShutdown registers what ends the answers that have no end of their own.
func (s *Server) OnShutdown(f func()) { s.http.RegisterOnShutdown(f) }

// Shutdown lets requests under way finish within drain and cuts off the rest. That some were cut
// off is no error.
func (s *Server) Shutdown(ctx context.Context, drain time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := s.http.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		s.end()
		return err
	}
	return s.Close()
}

// Close ends all connections and requests at once.
func (s *Server) Close() error {
	s.end()
	return s.http.Close()
}
