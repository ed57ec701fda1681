package httpserver

import (
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	// refusalTime is how long a refused connection waits for the client to send its request, and
	// then to read the answer. Clients may take an answer that arrives before their request for an
	// error.
	refusalTime = 5 * time.Second
	// refusalLogInterval is the minimum time between two log messages about refused connections.
	refusalLogInterval = 10 * time.Second
)

// refusal is the complete answer to a refused connection. It is written without reading the
// request.
const refusal = "HTTP/1.1 503 Service Unavailable\r\n" +
	"Content-Type: application/json\r\n" +
	"Content-Length: 128\r\n" +
	"Retry-After: 1\r\n" +
	"Connection: close\r\n\r\n" +
	`{"error":{"message":"The server has too many open connections; try again.","type":"server_error","param":null,"code":"busy"}}` + "  \n"

// listener accepts connections within the limits and refuses the others.
type listener struct {
	net.Listener
	connections *connections
	metrics     *metrics
	log         *slog.Logger
	plain       bool // without TLS: a refusal can be written without a handshake

	lingering chan struct{} // a slot for each refused connection that waits for its client
	running   sync.WaitGroup
	logged    time.Time // the last log message
	unlogged  int       // refusals since then
}

// Accept returns the next connection within the limits.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		admitted, full := l.connections.admit(inner)
		if admitted != nil {
			return admitted, nil
		}
		l.note(full, inner)
		l.refuse(inner)
	}
}

// note counts a refusal and logs it, together with those since the last message.
func (l *listener) note(full exceededLimit, refused net.Conn) {
	l.metrics.refuse(full)
	l.unlogged++
	if time.Since(l.logged) < refusalLogInterval {
		return
	}
	remedy := "raise http.max_connections and the limit of open files"
	if full == addressLimit {
		remedy = "raise http.max_connections_per_address, or list the address in http.proxies " +
			"if it is a proxy's"
	}
	host, _, _ := net.SplitHostPort(refused.RemoteAddr().String())
	l.log.Warn("connections refused", "bound", string(full), "count", l.unlogged, "address", host,
		"open", l.connections.count(), "remedy", remedy)
	l.logged, l.unlogged = time.Now(), 0
}

// refuse answers a connection with the refusal and closes it. Up to a number of connections linger
// until the client has sent a request and read the answer: clients take an answer before their
// request for an error, and lose one that is followed by a close with unread bytes. The others are
// answered at once, into the empty buffers of a new connection.
func (l *listener) refuse(inner net.Conn) {
	tcp, ok := inner.(*net.TCPConn)
	if !l.plain || !ok {
		inner.Close()
		return
	}
	_ = tcp.SetDeadline(time.Now().Add(refusalTime))
	select {
	case l.lingering <- struct{}{}:
	default:
		_, _ = io.WriteString(tcp, refusal)
		tcp.Close()
		return
	}
	l.running.Go(func() {
		defer func() { <-l.lingering }()
		defer tcp.Close()
		_, _ = tcp.Read(make([]byte, 1)) // the answer does not depend on it
		_ = tcp.SetDeadline(time.Now().Add(refusalTime))
		_, _ = io.WriteString(tcp, refusal)
		_ = tcp.CloseWrite()
		_, _ = io.CopyN(io.Discard, tcp, 256<<10)
	})
}
