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
	// maxStreams limits the concurrent requests of an HTTP/2 connection.
	maxStreams = 32
	// frameBytes limits an HTTP/2 frame, to the smallest limit that the protocol allows. A frame is
	// read into memory before the key is checked.
	frameBytes = 16 << 10
	// streamBytes limits the buffered body of an HTTP/2 request whose handler does not read, for
	// example while it waits for its turn. Over HTTP/1.1 the operating system buffers it.
	streamBytes = 64 << 10
)

// Options are the properties of a server that the operator does not configure.
type Options struct {
	// HalfClose answers clients that close their sending side after a request. Otherwise closing it
	// ends the request, as if the client were gone.
	HalfClose bool
	// CheckHost serves only hosts that cannot be a foreign name pointed at this server. It is for
	// servers that require no key.
	CheckHost bool
	// RefuseCrossSite refuses all requests from web pages of other sites, not only those that
	// change something.
	RefuseCrossSite bool
	// Pages are the paths to which pages of other sites may link all the same. They must be safe to
	// open by mistake, and refuse to be framed.
	Pages []string
	// TLS is the server's TLS configuration. Nil: it serves without TLS.
	TLS *tls.Config

	Logger     *slog.Logger          // nil: nothing is logged
	Registerer prometheus.Registerer // nil: metrics are not registered
}

// Server serves one handler under the limits of a Config.
type Server struct {
	config      Config
	options     Options
	http        *http.Server
	connections *connections
	metrics     *metrics
	log         *slog.Logger

	base context.Context // of requests that outlive their connection; ends at Close
	end  context.CancelFunc
}

// New returns a server of handler. Config must be valid; its zero value does not limit connections.
func New(config Config, handler http.Handler, options Options) (*Server, error) {
	s := &Server{config: config, options: options, log: options.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.base, s.end = context.WithCancel(context.Background())
	s.connections = &connections{
		max: config.MaxConnections, maxPerAddress: config.MaxConnectionsPerAddress,
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
		Handler:           s.countRequests(s.limitTransfers(guard.protect(handler))),
		TLSConfig:         options.TLS,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         s.connections.stateChanged,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReadFrameSize:              frameBytes,
			MaxReceiveBufferPerConnection: 4 * streamBytes,
			MaxReceiveBufferPerStream:     streamBytes,
			SendPingTimeout:               idleTimeout,
			WriteByteTimeout:              config.Grace,
		},
		// mostly about clients that disconnect
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// countRequests counts requests that share a connection.
func (s *Server) countRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 1 {
			next.ServeHTTP(w, r)
			return
		}
		end, full := s.connections.begin(r.RemoteAddr)
		if full != noLimit {
			s.metrics.refuse(full)
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusServiceUnavailable, "server_error", "busy",
				"The server has too many requests in progress; try again.")
			return
		}
		defer end()
		next.ServeHTTP(w, r)
	})
}

// Serve serves the connections of a listener until Shutdown or Close, and then returns nil.
func (s *Server) Serve(inner net.Listener) error {
	l := &listener{
		Listener: inner, connections: s.connections, metrics: s.metrics, log: s.log,
		plain: s.options.TLS == nil, lingering: make(chan struct{},
			maxRefusals(s.connections.max, OpenFiles())),
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

// OnShutdown registers a function that ends answers without an end of their own.
func (s *Server) OnShutdown(f func()) { s.http.RegisterOnShutdown(f) }

// Shutdown waits up to drain for requests in progress and aborts the rest. It returns nil also if
// it aborted some.
func (s *Server) Shutdown(ctx context.Context, drain time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := s.http.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		s.end()
		return err
	}
	return s.Close()
}

// Close aborts all connections and requests.
func (s *Server) Close() error {
	s.end()
	return s.http.Close()
}
