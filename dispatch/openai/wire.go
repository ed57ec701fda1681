package openai

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// wire is a http.RoundTripper for plain HTTP/1.1 to one host that does its work in the caller's goroutine.
//
// http.Transport gives each connection two goroutines of its own, for callers that leave early, for protocols in which the
// server speaks first, for bodies that are still being sent while the answer arrives. A line needs none of it, and the
// hand-overs between three goroutines cost more CPU time than all that dispatching does besides (docs/benchmarks.md).
// Requests are written and answers parsed by net/http all the same.
type wire struct {
	host   string // with port
	dialer net.Dialer

	mu   sync.Mutex
	idle []*wireConn // last used last
}

var _ http.RoundTripper = (*wire)(nil)

const (
	idleLife      = 90 * time.Second // as http.DefaultTransport's
	trustedIdle   = time.Second      // a connection idle for longer is looked at before it is used
	longestHead   = 1 << 20          // bytes of status line and header
	wireBuffer    = 4 << 10
	informational = 1 // the first digit of interim answers
)

// wireConn is one connection. Whoever took it from the pool owns it.
type wireConn struct {
	net.Conn
	in   *bufio.Reader
	head headLimit
	out  *bufio.Writer
	rest time.Time // since when it is idle; zero: new
}

// RoundTrip sends the request and reads the head of its answer. The connection is free again when the body was read to its end.
func (t *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		closeBody(req)
		return nil, context.Cause(ctx)
	}
	for fresh := false; ; fresh = true {
		conn, err := t.take(ctx, fresh)
		if err != nil {
			closeBody(req)
			return nil, err
		}
		answer, begun, err := conn.exchange(ctx, t, req)
		if err == nil {
			return answer, nil
		}
		conn.Close()
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		// A server may close an idle connection just when we write to it. Nothing came back, and the body can be had again:
		// then a new connection tells whether the server is well.
		if fresh || conn.rest.IsZero() || begun || req.GetBody == nil {
			return nil, err
		}
		if req.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
}

// exchange writes the request and reads the head of the answer; begun tells whether any of it came.
func (c *wireConn) exchange(ctx context.Context, t *wire, req *http.Request) (answer *http.Response, begun bool, err error) {
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	sent := req.Write(c.out)
	if sent == nil {
		sent = c.out.Flush()
	}
	// A server that refuses a long body may answer before it has all of it: its answer says more than our broken pipe.
	answer, err = c.readHead(req)
	begun = err == nil || c.in.Buffered() > 0
	if err != nil {
		stop()
		if sent != nil && !begun {
			err = sent
		}
		return nil, begun, fmt.Errorf("%s: %w", t.host, err)
	}
	answer.Body = &wireBody{ReadCloser: answer.Body, conn: c, pool: t, stop: stop, whole: sent == nil && !answer.Close}
	return answer, true, nil
}

// readHead reads the head of the final answer, past interim ones.
func (c *wireConn) readHead(req *http.Request) (*http.Response, error) {
	c.head.left = longestHead
	defer func() { c.head.left = math.MaxInt64 }()
	for {
		answer, err := http.ReadResponse(c.in, req)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil || answer.StatusCode/100 != informational || answer.StatusCode == http.StatusSwitchingProtocols {
			return answer, err
		}
	}
}

// take gives the connection that was used last, or a new one.
func (t *wire) take(ctx context.Context, fresh bool) (*wireConn, error) {
	for !fresh {
		c := t.pop()
		if c == nil {
			break
		}
		idle := time.Since(c.rest)
		if idle < trustedIdle || (idle < idleLife && c.alive()) {
			return c, nil
		}
		c.Close()
	}
	conn, err := t.dialer.DialContext(ctx, "tcp", t.host)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, err
	}
	c := &wireConn{Conn: conn, out: bufio.NewWriterSize(conn, wireBuffer)}
	c.head = headLimit{from: conn, left: math.MaxInt64}
	c.in = bufio.NewReaderSize(&c.head, wireBuffer)
	return c, nil
}

func (t *wire) pop() *wireConn {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.idle)
	if n == 0 {
		return nil
	}
	c := t.idle[n-1]
	t.idle[n-1] = nil
	t.idle = t.idle[:n-1]
	return c
}

// put takes a connection back, and lets go of those that nobody has wanted for long.
func (t *wire) put(c *wireConn) {
	c.rest = time.Now()
	t.mu.Lock()
	t.idle = append(t.idle, c)
	old := t.idle[:0:0]
	for len(t.idle) > 0 && c.rest.Sub(t.idle[0].rest) > idleLife {
		old = append(old, t.idle[0])
		t.idle = t.idle[1:]
	}
	t.mu.Unlock()
	for _, c := range old {
		c.Close()
	}
}

// CloseIdleConnections closes all connections that carry nothing.
func (t *wire) CloseIdleConnections() {
	t.mu.Lock()
	idle := t.idle
	t.idle = nil
	t.mu.Unlock()
	for _, c := range idle {
		c.Close()
	}
}

// alive looks whether the server has closed an idle connection, or said something nobody asked for.
func (c *wireConn) alive() bool {
	if c.SetReadDeadline(time.Unix(1, 0)) != nil {
		return false
	}
	var b [1]byte
	_, err := c.Read(b[:])
	return errors.Is(err, os.ErrDeadlineExceeded) && c.SetReadDeadline(time.Time{}) == nil
}

// wireBody is an answer's body; at its end the connection goes back to the pool.
type wireBody struct {
	io.ReadCloser
	conn  *wireConn
	pool  *wire
	stop  func() bool
	whole bool // the connection can be used again once the body is read
	done  bool
}

func (b *wireBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		b.finish(b.whole && b.conn.in.Buffered() == 0)
	case err != nil:
		b.finish(false)
	}
	return n, err
}

// Close lets go of the connection; one whose body was not read to its end can't be used again.
func (b *wireBody) Close() error {
	b.finish(false)
	return nil
}

func (b *wireBody) finish(again bool) {
	if b.done {
		return
	}
	b.done = true
	if b.stop() && again { // otherwise the deadline that ends the request may be in force
		b.pool.put(b.conn)
		return
	}
	b.conn.Close()
}

// headLimit keeps a server from filling the memory with an endless header.
type headLimit struct {
	from io.Reader
	left int64
}

var errLongHead = fmt.Errorf("the answer's header is longer than %d bytes", longestHead)

func (l *headLimit) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLongHead
	}
	if int64(len(p)) > l.left {
		p = p[:l.left]
	}
	n, err := l.from.Read(p)
	l.left -= int64(n)
	return n, err
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}
