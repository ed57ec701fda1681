package httpserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

func TestStalledReaderIsDisconnected(t *testing.T) {
	failed := make(chan error, 1)
	_, address := serve(t, testConfig(), Options{}, func(w http.ResponseWriter, _ *http.Request) {
		for chunk := make([]byte, 1<<20); ; {
			if _, err := w.Write(chunk); err != nil {
				failed <- err
				return
			}
		}
	})
	dial(t, address).send(get)
	if err := await(t, failed, "the end of an answer that nobody reads"); !errors.Is(err,
		os.ErrDeadlineExceeded) {
		t.Errorf("the answer ended with %v", err)
	}
}

// A client below the minimum rate is disconnected although every read makes progress.
func TestSlowReaderIsDisconnected(t *testing.T) {
	failed := make(chan error, 1)
	_, address := serve(t, testConfig(), Options{}, func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(make([]byte, 64<<20))
		failed <- err
	})
	c := dial(t, address)
	c.send(get)
	go func() {
		for part := make([]byte, 1<<10); ; time.Sleep(10 * time.Millisecond) {
			if _, err := c.Read(part); err != nil {
				return
			}
		}
	}()
	if await(t, failed, "the end of a slow reader") == nil {
		t.Error("64 MiB went out at 100 KiB/s within seconds")
	}
}

func TestReaderAboveTheRateGetsAll(t *testing.T) {
	const size = 8 << 20
	c := testConfig()
	c.MinRate = 256 << 10
	_, address := serve(t, c, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Write(make([]byte, size))
	})
	client := dial(t, address)
	client.Conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	client.send(get)
	answer, err := http.ReadResponse(client.answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got int64
	for start := time.Now(); ; { // 4 MiB/s, for ten times the grace
		n, err := io.CopyN(io.Discard, answer.Body, 64<<10)
		got += n
		if err != nil {
			break
		}
		time.Sleep(time.Until(start.Add(time.Duration(got) * time.Second / (4 << 20))))
	}
	if got != size {
		t.Errorf("got %d bytes of %d", got, size)
	}
}

func TestBodies(t *testing.T) {
	long := func(w http.ResponseWriter) {
		http.NewResponseController(w).SetReadDeadline(time.Time{})
	}
	for name, test := range map[string]struct {
		long     bool
		every    time.Duration // between two parts
		size     int           // of a part
		parts    int
		complete bool // it arrives
	}{
		"that stalls": {long: true, parts: 0, size: 1},
		"below the rate, a byte at a time": {long: true, every: 20 * time.Millisecond, size: 1,
			parts: 500},
		"long, where that is allowed": {long: true, every: 20 * time.Millisecond,
			size: 64 << 10, parts: 40, complete: true},
		"long, where that is not allowed": {every: 20 * time.Millisecond, size: 64 << 10,
			parts: 40},
		"short, where a long one is not allowed": {every: 20 * time.Millisecond, size: 64 << 10,
			parts: 3, complete: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := make(chan error, 1)
			s, address := serve(t, testConfig(), Options{}, func(
				w http.ResponseWriter, r *http.Request) {
				if test.long {
					long(w)
				}
				_, err := io.Copy(io.Discard, r.Body)
				read <- err
			})
			c := dial(t, address)
			c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", max(
				test.parts, 1)*test.size)
			for part := bytes.Repeat([]byte("x"), test.size); test.parts > 0; test.parts-- {
				if _, err := c.Write(part); err != nil {
					break
				}
				time.Sleep(test.every)
			}
			err := await(t, read, "the end of the body")
			if test.complete && err != nil || !test.complete && !errors.Is(
				err, os.ErrDeadlineExceeded) {
				t.Errorf("the body was read with %v", err)
			}
			if !test.complete {
				c.closed()
			}
			_ = s
		})
	}
}

// A body that no handler reads, as before authentication, does not hold its connection.
func TestUnreadBodiesAreDiscarded(t *testing.T) {
	_, address := serve(t, DefaultConfig(), Options{},
		func(w http.ResponseWriter, r *http.Request) {
			refuse(w, http.StatusUnauthorized, "invalid_request_error", "", "No.")
		})
	for name, head := range map[string]string{
		"small":   "Content-Length: 100\r\n\r\nx",
		"large":   "Content-Length: 100000000\r\n\r\nx",
		"chunked": "Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
		"asking":  "Content-Length: 100\r\nExpect: 100-continue\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, address)
			start := time.Now()
			c.send(
				"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=x\r\n%s",
				head)
			if status, _ := c.answer(); status != http.StatusUnauthorized {
				t.Errorf("got status %d", status)
			}
			c.closed()
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("the connection was open for %v", took)
			}
		})
	}
}

// A client that closes after its request, and sends all of it before it reads, gets the answer to a
// body that no handler reads.
func TestUnreadBodiesOfLastRequests(t *testing.T) {
	answered := make(chan struct{}, 1)
	_, address := serve(t, DefaultConfig(), Options{},
		func(w http.ResponseWriter, r *http.Request) {
			refuse(w, http.StatusUnauthorized, "invalid_request_error", "", "No.")
			answered <- struct{}{}
		})
	half := strings.Repeat("x", 100_000)
	for range 30 {
		c := dial(t, address)
		c.send("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
			2*len(half), half)
		if _, err := io.WriteString(c, half); err != nil {
			t.Fatalf("send the rest: %v", err)
		}
		<-answered
		if status, _ := c.answer(); status != http.StatusUnauthorized {
			t.Fatalf("got status %d", status)
		}
		c.closed()
	}
	// A client that asks before it sends its body gets no 100 Continue.
	c := dial(t, address)
	c.send("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 9\r\n" +
		"Expect: 100-continue\r\n\r\n")
	if status, _ := c.answer(); status != http.StatusUnauthorized {
		t.Errorf("got status %d", status)
	}
	<-answered
	c.closed()
}

// Time that the handler takes, before the answer or between two parts of it, does not count, and
// the connection serves further requests.
func TestSlowAnswersArrive(t *testing.T) {
	_, address := serve(t, testConfig(), Options{HalfClose: true},
		func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			for range 2 {
				select {
				case <-r.Context().Done():
					t.Error("the request was cancelled")
				case <-time.After(500 * time.Millisecond):
				}
				io.WriteString(w, "part\n")
				http.NewResponseController(w).Flush()
			}
		})
	c := dial(t, address)
	for range 2 {
		c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")
		if status, body := c.answer(); status != http.StatusOK || body != "part\npart\n" {
			t.Errorf("got %d %q", status, body)
		}
	}
}

func TestHandlersMayEndTransfers(t *testing.T) {
	read := make(chan error, 1)
	_, address := serve(t, DefaultConfig(), Options{},
		func(w http.ResponseWriter, r *http.Request) {
			control := http.NewResponseController(w)
			time.AfterFunc(50*time.Millisecond, func() { control.SetReadDeadline(time.Unix(1, 0)) })
			_, err := io.Copy(io.Discard, r.Body)
			read <- err
		})
	dial(t, address).send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx")
	if err := await(t, read, "the end of a body that the handler aborted"); !errors.Is(err,
		os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// A client that closes its sending side after a request is answered. A stream ends when its client
// closes the sending side.
func TestHalfClosedConnections(t *testing.T) {
	entered, left := make(chan struct{}, 1), make(chan error, 1)
	_, address := serve(t, DefaultConfig(), Options{HalfClose: true},
		func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if r.URL.Path == "/events" {
				w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
				http.NewResponseController(w).Flush()
				<-r.Context().Done()
				left <- r.Context().Err()
				return
			}
			entered <- struct{}{}
			select {
			case <-r.Context().Done():
				left <- r.Context().Err()
			case <-time.After(300 * time.Millisecond):
				io.WriteString(w, "done")
			}
		})
	for _, request := range []string{get,
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "GET / HTTP/1.0\r\n\r\n"} {
		c := dial(t, address)
		c.send("%s", request)
		c.Conn.(*net.TCPConn).CloseWrite()
		await(t, entered, "the handler")
		if status, body := c.answer(); status != http.StatusOK || body != "done" {
			t.Errorf("%.4s: got %d %q", request, status, body)
		}
		c.closed()
	}
	c := dial(t, address)
	c.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := c.answers.Peek(1); err != nil {
		t.Fatal(err)
	}
	c.Conn.(*net.TCPConn).CloseWrite()
	if err := await(t, left, "the end of a stream whose client left"); err != context.Canceled {
		t.Errorf("the stream ended with %v", err)
	}
}

// Close ends requests that outlive their connections.
func TestCloseEndsRequests(t *testing.T) {
	entered, left := make(chan struct{}, 1), make(chan error, 1)
	s, address := serve(t, DefaultConfig(), Options{HalfClose: true},
		func(_ http.ResponseWriter, r *http.Request) {
			entered <- struct{}{}
			<-r.Context().Done()
			left <- context.Cause(r.Context())
		})
	dial(t, address).send(get)
	await(t, entered, "the handler")
	if err := s.Shutdown(t.Context(), time.Millisecond); err != nil {
		t.Error(err)
	}
	if err := await(t, left, "the end of the request"); !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("the request ended with %v", err)
	}
}

func TestBudget(t *testing.T) {
	b := newBudget(1000, 10*time.Second)
	b.spend(4*time.Second, 0)
	if b.left != 6*time.Second {
		t.Errorf("left %v after a pause of 4 s of 10", b.left)
	}
	b.spend(time.Second, 2000)
	if b.left != 7*time.Second {
		t.Errorf("left %v, want 7s", b.left)
	}
	b.spend(0, 1<<30)
	if b.left != 10*time.Second {
		t.Errorf("left %v, more than the full budget", b.left)
	}
	any := newBudget(0, time.Second)
	any.spend(900*time.Millisecond, 1)
	if any.left != time.Second {
		t.Errorf("left %v without a rate, want all", any.left)
	}
	if !strings.HasPrefix(b.worth(500).String(), "500ms") {
		t.Errorf("500 bytes at 1000 B/s are worth %v", b.worth(500))
	}
}

// A handler may want to know that its client has gone before it answers.
func TestEndWithClient(t *testing.T) {
	ended := make(chan error, 1)
	_, address := serve(t, testConfig(), Options{HalfClose: true}, func(w http.ResponseWriter,
		r *http.Request) {
		EndWithClient(wrapped{w})
		<-r.Context().Done()
		ended <- r.Context().Err()
	})
	c := dial(t, address)
	c.send(get)
	c.Close()
	if err := await(t, ended, "the end of the request"); !errors.Is(err, context.Canceled) {
		t.Errorf("the request ended with %v", err)
	}
	EndWithClient(wrapped{}) // no writer of a server: nothing happens
}

type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }
