package httpserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// testConfig returns limits that end slow transfers soon.
func testConfig() Config {
	return Config{Tuning: Tuning{MinRate: 1 << 20, Grace: 200 * time.Millisecond,
		BodyTimeout: 400 * time.Millisecond}}
}

// serve serves a handler until the test ends and returns its address.
func serve(t *testing.T, c Config, o Options, handler http.HandlerFunc) (*Server, string) {
	t.Helper()
	return serveOn(t, "127.0.0.1:0", c, o, handler)
}

func serveOn(
	t *testing.T, address string, c Config, o Options, handler http.HandlerFunc,
) (*Server, string) {
	t.Helper()
	s, err := New(c, handler, o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s, l.Addr().String()
}

// client is a raw connection.
type client struct {
	t testing.TB
	net.Conn
	answers *bufio.Reader
}

func dial(t testing.TB, address string) *client {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{t, c, bufio.NewReader(c)}
}

func (c *client) send(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c, format, args...); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads one answer completely.
func (c *client) answer() (status int, body string) {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	r, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Body.Close()
	read, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return r.StatusCode, string(read)
}

// closed waits until the server has closed the connection.
func (c *client) closed() {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.Copy(io.Discard, c.answers); err != nil {
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			c.t.Fatal("the connection remains open")
		}
	}
}

// await returns the next value and fails the test if none arrives.
func await[T any](t testing.TB, values <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-values:
		return v
	case <-time.After(10 * time.Second):
		t.Fatalf("timeout: no %s", what)
		panic("unreachable")
	}
}
