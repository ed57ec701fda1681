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

// wire is a transport for plain HTTP/1.1 to one host that works in the caller's goroutine. net/http
// writes the requests and parses the answers.
//
// It replaces http.Transport because that has two goroutines for each connection, and switching
// between three goroutines takes more CPU time than the rest of dispatching. With http.Transport a
// process sends a third fewer lines per second for 55% more CPU time: 62% instead of 94% of the
// rate of a bare client loop, and 40 instead of 26 µs of CPU per line, on two cores with 100 lines
// in flight. To measure, with and without wire in newTransport:
//
//	go test -run - -bench AgainstBareLoop/100 -benchtime 4x ./dispatch
//	go test -run - -bench Transports ./dispatch/openai
type wire struct {
	host   string // with port
	dialer net.Dialer

	mu   sync.Mutex
	idle []*wireConn // last used last
	// closing says that connections are not used again
	closing bool
}

var _ transport = (*wire)(nil)

const (
	wireBuffer    = 4 << 10
	informational = 1 // first digit of the status of interim answers
)

// wireConn is one connection. It belongs to the pool, or to the request that took it from there.
type wireConn struct {
	countedConn
	idleCheck
	in        *bufio.Reader
	head      headLimit
	out       *bufio.Writer
	idleSince time.Time // zero: it is new
}

// roundTrip implements [transport]. The connection returns to the pool when the body has been read
// to its end.
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
	p.reused = !conn.idleSince.IsZero()
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
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	before := c.written.Load()
	sent := req.Write(c.out)
	if sent == nil {
		sent = c.out.Flush()
	}
	if err := unreadable(req); err != nil { // the server waits for the rest
		stop()
		return nil, fmt.Errorf("%s: %w", t.host, err)
	}
	if sent != nil && c.written.Load() == before {
		stop()
		return nil, fmt.Errorf("%s: %w", t.host, sent)
	}
	// A server that refuses a long body may answer before it has all of it. Its answer explains
	// more than the broken pipe.
	answer, err := c.readHead(req)
	if err != nil {
		stop()
		if sent != nil && c.in.Buffered() == 0 {
			err = sent
		}
		return nil, fmt.Errorf("%s: %w", t.host, err)
	}
	answer.Body = &wireBody{ReadCloser: answer.Body, conn: c, pool: t, stop: stop,
		reuse: sent == nil && !answer.Close}
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

// take returns the usable connection that was used last, or a new one.
func (t *wire) take(ctx context.Context) (*wireConn, error) {
	for c := t.pop(); c != nil; c = t.pop() {
		if time.Since(c.idleSince) < idleLife && c.usable() {
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
	c := &wireConn{countedConn: countedConn{Conn: conn}, idleCheck: newIdleCheck(conn)}
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

// put returns a connection to the pool, and closes those that have been idle for idleLife.
func (t *wire) put(c *wireConn) {
	c.idleSince = time.Now()
	t.mu.Lock()
	if t.closing {
		t.mu.Unlock()
		c.Close()
		return
	}
	t.idle = append(t.idle, c)
	old := t.idle[:0:0]
	for len(t.idle) > 0 && c.idleSince.Sub(t.idle[0].idleSince) > idleLife {
		old = append(old, t.idle[0])
		t.idle = t.idle[1:]
	}
	t.mu.Unlock()
	for _, c := range old {
		c.Close()
	}
}

// CloseIdleConnections closes all connections in the pool, and from now on each one that returns to
// it.
func (t *wire) CloseIdleConnections() {
	t.mu.Lock()
	idle := t.idle
	t.idle, t.closing = nil, true
	t.mu.Unlock()
	for _, c := range idle {
		c.Close()
	}
}

// usable reports whether an idle connection can carry a request: the server has neither closed it
// nor sent something unrequested, which would be taken for the answer.
func (c *wireConn) usable() bool { return c.in.Buffered() == 0 && c.isIdle() }

// wireBody is an answer's body. At its end the connection returns to the pool.
type wireBody struct {
	io.ReadCloser
	conn  *wireConn
	pool  *wire
	stop  func() bool
	reuse bool // the connection can be used again once the body is read
	done  bool
}

func (b *wireBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		b.finish(b.reuse)
	case err != nil:
		b.finish(false)
	}
	return n, err
}

// Close ends the use of the connection. If the body was not read to its end, it closes the
// connection.
func (b *wireBody) Close() error {
	b.finish(false)
	return nil
}

// finish ends the use of the connection, once. After that another request may have it.
func (b *wireBody) finish(again bool) {
	if b.done {
		return
	}
	b.done = true
	// if stop returns false, the deadline that ends the request may be set
	if b.stop() && again && b.conn.in.Buffered() == 0 {
		b.pool.put(b.conn)
		return
	}
	b.conn.Close()
}

// headLimit limits the size of an answer's header.
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
