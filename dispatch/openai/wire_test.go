package openai

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

const path = "/v1/chat/completions"

// lineOf is a request with a body that can be had again and again.
func lineOf(body string) Request {
	return Request{
		Path: path, Size: int64(len(body)), ID: "batch_req_1", Tenant: "t",
		NewBody: func() io.ReadCloser { return io.NopCloser(strings.NewReader(body)) },
	}
}

// newClient makes a client that the test closes.
func newClient(t *testing.T, cfg Config) *Client {
	t.Helper()
	cfg.DialTimeout = 5 * time.Second
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func clientOf(t *testing.T, url string) *Client {
	t.Helper()
	c := newClient(t, Config{URL: url, MaxAnswer: 1 << 20, TenantHeaders: []string{"X-Tenant-ID"}})
	if _, ok := c.transport.(*wire); !ok {
		t.Fatalf("%s is reached by %T", url, c.transport)
	}
	return c
}

// countConns counts the connections that a server was made.
func countConns(s *httptest.Server) *atomic.Int64 {
	var n atomic.Int64
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			n.Add(1)
		}
	}
	return &n
}

func start(t *testing.T, h http.HandlerFunc) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	n := countConns(s)
	s.Start()
	t.Cleanup(s.Close)
	return s, n
}

func TestWireSpeaksHTTP(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	s, conns := start(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.ContentLength != int64(len(body)) ||
			r.Header.Get("X-Tenant-Id") != "t" || r.Header.Get("X-Request-Id") != "batch_req_1" {
			t.Errorf("got %d bytes of %d, %v, header %v", len(body), r.ContentLength, err, r.Header)
		}
		w.Header().Set("X-Request-Id", "up-1")
		switch string(body) {
		case "chunked":
			io.WriteString(w, `{"a":`)
			w.(http.Flusher).Flush()
			io.WriteString(w, `1}`)
		case "early":
			w.Header().Set("Link", "</x>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		case "empty":
			w.WriteHeader(http.StatusNoContent)
		case "long":
			io.WriteString(w, long)
		default:
			w.Write(body)
		}
	})
	c := clientOf(t, s.URL+"/v1/")
	var scratch Scratch
	for _, test := range []struct {
		body, answer string
		status       int
		retryAfter   time.Duration
	}{
		{"plain", "plain", 200, 0},
		{"chunked", `{"a":1}`, 200, 0},
		{"early", "", 429, 7 * time.Second},
		{"empty", "", 204, 0},
		{"long", long, 200, 0},
		{long, long, 200, 0},
	} {
		a, err := c.Send(t.Context(), lineOf(test.body), &scratch)
		if err != nil || a.Status != test.status || string(a.Body) != test.answer ||
			a.RequestID != "up-1" || a.RetryAfter != test.retryAfter {
			t.Errorf("%.20s: got %d, %.40q, %v, %v", test.body, a.Status, a.Body, a.RetryAfter, err)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections were made, want one that is used again", n)
	}
}

func TestWireServesManyAtOnce(t *testing.T) {
	s, conns := start(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	c := clientOf(t, s.URL)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			var scratch Scratch
			for k := range 100 {
				want := fmt.Sprint(i, "/", k)
				a, err := c.Send(t.Context(), lineOf(want), &scratch)
				if err != nil || string(a.Body) != want {
					t.Errorf("%s: got %q, %v", want, a.Body, err)
				}
			}
		})
	}
	all.Wait()
	if n := conns.Load(); n > 20 {
		t.Errorf("%d connections were made for 20 senders", n)
	}
}

func TestWireReplacesClosedConnections(t *testing.T) {
	var served atomic.Int64
	s, conns := start(t, func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		io.Copy(w, r.Body)
	})
	c := clientOf(t, s.URL)
	var scratch Scratch
	for i := range 5 {
		if a, err := c.Send(t.Context(), lineOf("x"), &scratch); err != nil ||
			string(a.Body) != "x" {
			t.Fatalf("request %d: %q, %v", i, a.Body, err)
		}
		s.CloseClientConnections()
		awaitDead(t, c)
	}
	if served.Load() != 5 || conns.Load() != 5 {
		t.Errorf("%d requests on %d connections, want 5 on 5", served.Load(), conns.Load())
	}
}

// rawServer serves each connection with a function.
func rawServer(t *testing.T, serve func(conn net.Conn, in *bufio.Reader)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn, bufio.NewReader(conn))
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

func TestWireReportsOutcomes(t *testing.T) {
	readRequest := func(in *bufio.Reader) {
		if r, err := http.ReadRequest(in); err == nil {
			io.Copy(io.Discard, r.Body)
		}
	}
	for name, test := range map[string]struct {
		serve func(net.Conn, *bufio.Reader)
		want  plan.Outcome
	}{
		"closed without a word": {func(c net.Conn, in *bufio.Reader) {
			readRequest(in)
		}, plan.Died},
		"half a head": {func(c net.Conn, in *bufio.Reader) {
			readRequest(in)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nCont")
		}, plan.Died},
		"half a body": {func(c net.Conn, in *bufio.Reader) {
			readRequest(in)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}")
		}, plan.Died},
		"half a chunk": {func(c net.Conn, in *bufio.Reader) {
			readRequest(in)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}")
		}, plan.Died},
		"no HTTP": {func(c net.Conn, in *bufio.Reader) {
			readRequest(in)
			io.WriteString(c, "hello\r\n\r\n")
		}, plan.Died},
		"endless head": {func(c net.Conn, in *bufio.Reader) {
			readRequest(in)
			endless(c)
		}, plan.Died},
		"too many headers": {func(c net.Conn, in *bufio.Reader) {
			readRequest(in)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"+strings.Repeat(
				"X: y\r\n", 5000)+"\r\n{}")
		}, plan.Died},
		"too long a body": {func(c net.Conn, in *bufio.Reader) {
			readRequest(in)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n{}")
		}, plan.TooLong},
		"until it closes": {func(c net.Conn, in *bufio.Reader) {
			readRequest(in)
			io.WriteString(c, "HTTP/1.0 200 OK\r\n\r\n{\"choices\":[]}")
		}, plan.Succeeded},
		"refused before it was read": {func(c net.Conn, in *bufio.Reader) {
			http.ReadRequest(in)
			io.WriteString(
				c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
		}, plan.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			c := clientOf(t, rawServer(t, test.serve))
			ctx := t.Context()
			a, err := c.Send(ctx, lineOf("{}"), &Scratch{})
			if got := Classify(ctx, a, err); got != test.want {
				t.Errorf("got %v (%d, %q, %v), want %v", got, a.Status, a.Body, err, test.want)
			}
		})
	}
}

func endless(c net.Conn) {
	io.WriteString(c, "HTTP/1.1 200 OK\r\n")
	for {
		if _, err := io.WriteString(c, "X: "+strings.Repeat("y", 1000)+"\r\n"); err != nil {
			return
		}
	}
}

func TestWireEndsWithItsContext(t *testing.T) {
	for name, serve := range map[string]func(net.Conn, *bufio.Reader){
		"before the head": func(_ net.Conn, in *bufio.Reader) { io.Copy(io.Discard, in) },
		"within the body": func(c net.Conn, in *bufio.Reader) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}")
			io.Copy(io.Discard, in)
		},
		"while sending": nil, // reads nothing
	} {
		t.Run(name, func(t *testing.T) {
			body := "{}"
			if serve == nil {
				stuck := make(chan struct{})
				t.Cleanup(func() { close(stuck) })
				serve = func(net.Conn, *bufio.Reader) { <-stuck }
				body = strings.Repeat("x", 64<<20)
			}
			c := clientOf(t, rawServer(t, serve))
			for cause, want := range map[error]plan.Outcome{ErrEvicted: plan.Evicted,
				context.DeadlineExceeded: plan.TimedOut} {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(30*time.Millisecond, func() { cancel(cause) })
				a, err := c.Send(ctx, lineOf(body), &Scratch{})
				if got := Classify(ctx, a, err); got != want {
					t.Errorf("%v: got %v (%v), want %v", cause, got, err, want)
				}
			}
		})
	}
}

func TestWireReportsUnreachableServers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	c := clientOf(t, "http://"+listener.Addr().String())
	a, err := c.Send(t.Context(), lineOf("{}"), &Scratch{})
	if got := Classify(t.Context(), a, err); got != plan.Unreachable {
		t.Errorf("got %v (%v), want unreachable", got, err)
	}
}

func TestWireDoesNotReuseUnreadConnections(t *testing.T) {
	// A server that says more than its header promises must not have the rest taken for the next
	// answer.
	url := rawServer(t, func(c net.Conn, in *bufio.Reader) {
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(
				c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"+
					"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong", len(body), body)
		}
	})
	c := clientOf(t, url)
	for i := range 10 {
		want := fmt.Sprintf(`{"n":%d}`, i)
		a, err := c.Send(t.Context(), lineOf(want), &Scratch{})
		if err != nil || string(a.Body) != want {
			t.Fatalf("got %q, %v, want %s", a.Body, err, want)
		}
	}
}

func TestTLSAndProxiesUseNetHTTP(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, r.Body)
	}))
	defer s.Close()
	c := newClient(t, Config{URL: s.URL, MaxAnswer: 1 << 20})
	through, ok := c.transport.(*netTransport)
	if !ok {
		t.Fatalf("https is carried by %T", c.transport)
	}
	through.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
	a, err := c.Send(t.Context(), lineOf("{}"), &Scratch{})
	if err != nil || !bytes.Equal(a.Body, []byte("{}")) {
		t.Errorf("got %q, %v", a.Body, err)
	}
}

func TestClosingAReadBodyKeepsItsConnection(t *testing.T) {
	s, conns := start(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") })
	c := clientOf(t, s.URL)
	read := func() io.Reader {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		if err != nil {
			t.Error(err)
			return strings.NewReader("")
		}
		answer, err := c.transport.roundTrip(req, new(passage))
		if err != nil {
			t.Error(err)
			return strings.NewReader("")
		}
		io.Copy(io.Discard, answer.Body)
		return answer.Body
	}
	body := read()
	done := make(chan struct{})
	go func() { // uses the same connection
		defer close(done)
		read()
	}()
	if n, err := body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("got %d bytes, %v after the end", n, err)
	}
	<-done
	if conns.Load() != 1 {
		t.Errorf("%d connections, want 1", conns.Load())
	}
}

func TestCredentialsOfTheURLAreSent(t *testing.T) {
	var mu sync.Mutex
	var got []string
	s, _ := start(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Header.Get("Authorization"))
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusUnauthorized)
		}
		io.WriteString(w, "{}")
	})
	url := strings.Replace(s.URL, "http://", "http://user:secret@", 1)
	for name, test := range map[string]struct {
		cfg  Config
		want string
	}{
		"alone":         {Config{}, "Basic dXNlcjpzZWNyZXQ="},
		"with a key":    {Config{APIKey: "k"}, "Bearer k"},
		"with a header": {Config{Header: http.Header{"authorization": {"Own"}}}, "Own"},
	} {
		got = nil
		test.cfg.URL, test.cfg.MaxAnswer = url, 1<<20
		c := newClient(t, test.cfg)
		if _, err := c.Send(t.Context(), lineOf("{}"), &Scratch{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_, err := c.Models(t.Context(), 1)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want an error without the password", name, err)
		}
		mu.Lock()
		if len(got) != 2 || got[0] != test.want || got[1] != test.want {
			t.Errorf("%s: got %q, want %q twice", name, got, test.want)
		}
		mu.Unlock()
	}
	if _, err := New(Config{URL: "ftp://user:secret@h"}); err == nil ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want an error without the password", err)
	}
}
