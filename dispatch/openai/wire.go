package openai

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"sync"
	"time"
)

// wire is a transport for plain HTTP/1.1 to one host that does its work in the caller's goroutine.
//
// http.Transport gives each connection two goroutines of its own, for callers that leave early, for
// protocols in which the server speaks first, for bodies that are still being sent while the answer
// arrives. A line needs none of it, and the hand-overs between three goroutines cost more CPU time
// than all that dispatching does besides (docs/benchmarks.md). Requests are written and answers
// parsed by net/http all the same.
type wire struct {
	host   string // with port
	dialer net.Dialer

	mu   sync.Mutex
	idle []*wireConn // last used last
}

var _ transport = (*wire)(nil)

const (
	wireBuffer    = 4 << 10
	informational = 1 // the first digit of interim answers
)

// wireConn is one connection. Whoever took it from the pool owns it.
type wireConn struct {
	countedConn
	peeker
	in   *bufio.Reader
	head headLimit
	out  *bufio.Writer
	rest time.Time // since when it is idle; zero: new
}

// roundTrip implements [transport]. The connection is free again when the body was read to its end.
func (t *wire) roundTrip(req *http.Request, p *passage) (*http.Response, error) {
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		closeBody(req)
		return nil, context.Cause(ctx)
	}
	conn, err := t.take(ctx)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	p.reused = !conn.rest.IsZero()
	before := conn.written.Load()
	answer, err := conn.exchange(ctx, t, req)
	p.sent = conn.written.Load() > before
	if err != nil {
		conn.Close()
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, err
	}
	return answer, nil
}

// exchange writes the request and reads the head of the answer.
func (c *wireConn) exchange(
	ctx context.Context, t *wire, req *http.Request,
) (*http.Response, error) {
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	before := c.written.Load()
	sent := req.Write(c.out)
	if sent == nil {
		sent = c.out.Flush()
	}
	if sent != nil && c.written.Load() == before {
		stop()
		return nil, fmt.Errorf("%s: %w", t.host, sent)
	}
	// A server that refuses a long body may answer before it has all of it: its answer says more
	// than our broken pipe.
	answer, err := c.readHead(req)
	if err != nil {
		stop()
		if sent != nil && c.in.Buffered() == 0 {
			err = sent
		}
		return nil, fmt.Errorf("%s: %w", t.host, err)
	}
	answer.Body = &wireBody{ReadCloser: answer.Body, conn: c, pool: t, stop: stop,
		whole: sent == nil && !answer.Close}
	return answer, nil
}

// readHead reads the head of the final answer, past interim ones.
func (c *wireConn) readHead(req *http.Request) (*http.Response, error) {
	c.head.left, c.head.lines = longestHead, mostHeaders
	defer func() { c.head.left = math.MaxInt64 }()
	for {
		answer, err := http.ReadResponse(c.in, req)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil || answer.StatusCode/100 != informational ||
			answer.StatusCode == http.StatusSwitchingProtocols {
			return answer, err
		}
	}
}

// take gives the connection that was used last, if nothing has come on it since, or a new one.
func (t *wire) take(ctx context.Context) (*wireConn, error) {
	for c := t.pop(); c != nil; c = t.pop() {
		if time.Since(c.rest) < idleLife && c.quiet() {
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
	c := &wireConn{countedConn: countedConn{Conn: conn}, peeker: newPeeker(conn)}
	c.out = bufio.NewWriterSize(c, wireBuffer)
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

// quiet reports whether an idle connection can carry a request: the server has neither closed it
// nor said something that nobody asked for, which would be taken for the answer.
func (c *wireConn) quiet() bool { return c.in.Buffered() == 0 && c.peek() }

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
		b.finish(b.whole)
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

// finish gives the connection up, once: from then on it may be another request's.
func (b *wireBody) finish(again bool) {
	if b.done {
		return
	}
	b.done = true
	// otherwise the deadline that ends the request may be in force
	if b.stop() && again && b.conn.in.Buffered() == 0 {
		b.pool.put(b.conn)
		return
	}
	b.conn.Close()
}

// headLimit keeps a server from filling the memory with an endless header.
type headLimit struct {
	from  io.Reader
	left  int64
	lines int
}

var errLongHead = fmt.Errorf("the answer's header is longer than %d bytes or %d lines", longestHead,
	mostHeaders)

func (l *headLimit) Read(p []byte) (int, error) {
	if l.left == math.MaxInt64 {
		return l.from.Read(p)
	}
	if l.left <= 0 || l.lines < 0 {
		return 0, errLongHead
	}
	if int64(len(p)) > l.left {
		p = p[:l.left]
	}
	n, err := l.from.Read(p)
	l.left -= int64(n)
	l.lines -= bytes.Count(p[:n], []byte{'\n'})
	return n, err
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}
