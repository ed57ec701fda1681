package openai

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"
)

// transport sends requests over connections that it keeps. It never repeats a request: the planner
// decides whether a line that a server may have received is sent again.
type transport interface {
	// roundTrip sends the request and reads the head of its answer. It sets p even if it fails.
	roundTrip(req *http.Request, p *passage) (*http.Response, error)
	CloseIdleConnections()
}

// passage reports how far a request got.
type passage struct {
	sent   bool // the connection accepted a part of it, so the server may have received it
	reused bool // the connection had carried other requests before
	// deadline is given: that of the request, for a Carrier.
	deadline time.Time
}

const (
	idleLife    = 90 * time.Second // as http.DefaultTransport's
	longestHead = 32 << 10         // bytes of an answer's status line and header
	// text lines of it, since a parsed one takes far more memory than its bytes
	maxHeaders   = 256
	tlsKeepAlive = 30 * time.Second
)

// newTransport returns the configured Carrier or, without one, a wire for plain HTTP to the server
// itself, and net/http's transport for TLS (with HTTP/2 if the server offers it) and proxies.
func newTransport(cfg Config, base *url.URL) transport {
	if cfg.Carrier != nil {
		return carried{cfg.Carrier}
	}
	dialer := net.Dialer{Timeout: cfg.DialTimeout, KeepAlive: tlsKeepAlive}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: base})
	if base.Scheme == "http" && proxy == nil && err == nil {
		host := base.Host
		if base.Port() == "" {
			host = net.JoinHostPort(base.Hostname(), "80")
		}
		return &wire{host: host, dialer: dialer}
	}
	return newNetTransport(cfg, dialer)
}

// netTransport is net/http's transport. That repeats requests without a body and those with
// GetBody. The requests here have a body and no GetBody.
type netTransport struct{ http.Transport }

func newNetTransport(cfg Config, dialer net.Dialer) *netTransport {
	t := &netTransport{}
	t.Proxy = http.ProxyFromEnvironment
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: conn}, nil
	}
	t.ForceAttemptHTTP2 = true
	// as many as lines are in flight, which flow control limits
	t.MaxIdleConnsPerHost = 1 << 16
	t.IdleConnTimeout = idleLife
	t.TLSHandshakeTimeout = cfg.DialTimeout
	t.MaxResponseHeaderBytes = longestHead
	t.DisableCompression = true // answers stay as they were sent
	return t
}

func (t *netTransport) roundTrip(req *http.Request, p *passage) (*http.Response, error) {
	var conn *countedConn
	var before int64
	var shared, begun atomic.Bool // shared: the connection carries other requests at the same time
	trace := httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			p.reused = got.Reused
			over := got.Conn
			if secure, ok := over.(*tls.Conn); ok {
				shared.Store(secure.ConnectionState().NegotiatedProtocol == "h2")
				over = secure.NetConn()
			}
			if conn, _ = over.(*countedConn); conn != nil {
				before = conn.written.Load()
			}
		},
		WroteHeaders: func() { begun.Store(true) },
	}
	answer, err := t.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), &trace)))
	switch {
	case err == nil:
		p.sent = true
	case shared.Load() || conn == nil:
		p.sent = begun.Load()
	default:
		p.sent = conn.written.Load() > before
	}
	return answer, err
}

// countedConn counts the bytes that a connection has accepted.
type countedConn struct {
	net.Conn
	written atomic.Int64
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
}
