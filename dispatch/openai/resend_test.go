package openai

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// answerOK reads a request and answers it with its own body; ok is false at the end of the
// connection.
func answerOK(c net.Conn, in *bufio.Reader, header string) (ok bool) {
	r, err := http.ReadRequest(in)
	if err != nil {
		return false
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	fmt.Fprintf(c, "HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s",
		strings.ReplaceAll(header, "ID", r.Header.Get("X-Request-Id")), len(body), body)
	return true
}

// trust lets a client of a TLS test server accept its certificate.
func trust(t *testing.T, c *Client) {
	t.Helper()
	over, ok := c.transport.(*netTransport)
	if !ok {
		t.Fatalf("TLS is carried by %T", c.transport)
	}
	over.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
}

// rawTLSServer is rawServer behind TLS.
func rawTLSServer(t *testing.T, serve func(conn net.Conn, in *bufio.Reader)) string {
	t.Helper()
	certified := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(certified.Close)
	plain := rawServer(t, func(conn net.Conn, _ *bufio.Reader) {
		over := tls.Server(conn, &tls.Config{Certificates: certified.TLS.Certificates})
		defer over.Close()
		serve(over, bufio.NewReader(over))
	})
	return strings.Replace(plain, "http:", "https:", 1)
}

func TestWrittenRequestIsNotSentAgain(t *testing.T) {
	for scheme, listen := range map[string]func(*testing.T,
		func(net.Conn, *bufio.Reader)) string{"http": rawServer, "https": rawTLSServer} {
		for name, before := range map[string]int{"on a new connection": 0,
			"on a used connection": 1} {
			t.Run(scheme+" "+name, func(t *testing.T) {
				var seen, conns atomic.Int64
				url := listen(t, func(c net.Conn, in *bufio.Reader) {
					conns.Add(1)
					for range before {
						if !answerOK(c, in, "") {
							return
						}
						seen.Add(1)
					}
					if r, err := http.ReadRequest(in); err == nil {
						io.Copy(io.Discard, r.Body)
						seen.Add(1) // and breaks off, as an engine that dies of the line
					}
				})
				c := newClient(t, Config{URL: url, MaxAnswer: 1 << 20, Header: http.Header{
					"Idempotency-Key": {"x"}}})
				if scheme == "https" {
					trust(t, c)
				}
				for range before {
					if a, err := c.Send(t.Context(), lineOf("{}"), &Scratch{}); err != nil ||
						!a.Sent {
						t.Fatalf("got %+v, %v", a, err)
					}
				}
				a, err := c.Send(t.Context(), lineOf("{}"), &Scratch{})
				if got := Classify(t.Context(), a, err); got != plan.Died || !a.Sent {
					t.Errorf("got %v, sent %v (%v), want a request that was sent and died", got,
						a.Sent, err)
				}
				if seen.Load() != int64(before)+1 || conns.Load() != 1 {
					t.Errorf("the server saw %d requests on %d connections, want %d on 1",
						seen.Load(), conns.Load(), before+1)
				}
			})
		}
	}
}

// awaitDead waits until the client could know that its idle connection is of no use any more.
func awaitDead(t *testing.T, c *Client) {
	t.Helper()
	w := c.transport.(*wire)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		dead := len(w.idle) == 1 && !w.idle[0].usable()
		w.mu.Unlock()
		if dead {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the idle connection seems usable")
		}
	}
}

func TestClosedConnectionIsNotUsed(t *testing.T) {
	var conns atomic.Int64
	url := rawServer(t, func(c net.Conn, in *bufio.Reader) {
		conns.Add(1)
		answerOK(c, in, "")
	})
	c := clientOf(t, url)
	for i := range 3 {
		a, err := c.Send(t.Context(), lineOf("{}"), &Scratch{})
		if err != nil || string(a.Body) != "{}" || !a.Sent {
			t.Fatalf("request %d: got %+v, %v", i, a, err)
		}
		awaitDead(t, c)
	}
	if conns.Load() != 3 {
		t.Errorf("%d connections, want one for each request", conns.Load())
	}
}

func TestUnsolicitedAnswerIsNotUsed(t *testing.T) {
	url := rawServer(t, func(c net.Conn, in *bufio.Reader) {
		for answerOK(c, in, "") {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"of\":\"?\"}")
		}
	})
	c := clientOf(t, url)
	for i := range 5 {
		want := fmt.Sprintf(`{"n":%d}`, i)
		a, err := c.Send(t.Context(), lineOf(want), &Scratch{})
		if err != nil || string(a.Body) != want {
			t.Fatalf("got %q, %v, want %s", a.Body, err, want)
		}
		if len(c.transport.(*wire).idle) == 1 { // else the stray bytes came with the answer
			awaitDead(t, c)
		}
	}
}

func TestAnswerWithAnotherLinesIDIsRefused(t *testing.T) {
	for scheme, listen := range map[string]func(*testing.T,
		func(net.Conn, *bufio.Reader)) string{"http": rawServer, "https": rawTLSServer} {
		t.Run(scheme, func(t *testing.T) {
			var conns atomic.Int64
			url := listen(t, func(c net.Conn, in *bufio.Reader) {
				conns.Add(1)
				answerOK(c, in, "X-Request-Id: ID\r\n")
				answerOK(c, in, "X-Request-Id: of-another-line\r\n")
				answerOK(c, in, "X-Request-Id: of-another-line\r\n")
			})
			c := newClient(t, Config{URL: url, MaxAnswer: 1 << 20})
			if scheme == "https" {
				trust(t, c)
			}
			for i := range 6 {
				a, err := c.Send(t.Context(), lineOf("{}"), &Scratch{})
				if i%2 == 0 && err != nil {
					t.Errorf("request %d: %v", i, err)
				}
				if i%2 == 1 && (!errors.Is(err, errMixedUp) || Classify(
					t.Context(), a, err) != plan.Died || !a.Sent) {
					t.Errorf("request %d: got %+v, %v, want an answer that is not taken", i, a, err)
				}
			}
			if conns.Load() != 3 {
				t.Errorf("%d connections, want 3: one that mixes answers up is closed",
					conns.Load())
			}
		})
	}
}

func TestServersWithIDsOfTheirOwnAreAccepted(t *testing.T) {
	for name, first := range map[string]string{"all of them": "theirs", "some of them": "ID"} {
		t.Run(name, func(t *testing.T) {
			var conns atomic.Int64
			url := rawServer(t, func(c net.Conn, in *bufio.Reader) {
				header := "X-Request-Id: theirs\r\n"
				// a gateway's first answer may come from another server than the next
				if conns.Add(1) == 1 {
					header = "X-Request-Id: " + first + "\r\n"
				}
				for answerOK(c, in, header) {
					header = "X-Request-Id: theirs\r\n"
				}
			})
			c := clientOf(t, url)
			failed := 0
			for range 10 {
				if a, err := c.Send(t.Context(), lineOf("{}"), &Scratch{}); err != nil || string(
					a.Body) != "{}" {
					failed++
				}
			}
			if want := map[string]int{"theirs": 0, "ID": 1}[first]; failed != want {
				t.Errorf("%d of 10 answers were not taken, want %d", failed, want)
			}
		})
	}
}

// HTTP/2 numbers its answers. A gateway may echo the ids of some requests only.
func TestAnswersOverHTTP2MayHaveAnyID(t *testing.T) {
	var requests atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", r.Header.Get("X-Request-Id"))
		if requests.Add(1) > 1 {
			w.Header().Set("X-Request-Id", "theirs")
		}
		io.Copy(w, r.Body)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	c := newClient(t, Config{URL: s.URL, MaxAnswer: 1 << 20})
	trust(t, c)
	for i := range 5 {
		a, err := c.Send(t.Context(), lineOf("{}"), &Scratch{})
		if err != nil || string(a.Body) != "{}" {
			t.Errorf("request %d: got %q, %v", i, a.Body, err)
		}
	}
}

func TestServerWithoutTLSIsUnreachable(t *testing.T) {
	url := strings.Replace(rawServer(t, func(c net.Conn, in *bufio.Reader) {}), "http:",
		"https:", 1)
	c := newClient(t, Config{URL: url, MaxAnswer: 1 << 20})
	a, err := c.Send(t.Context(), lineOf("{}"), &Scratch{})
	if got := Classify(t.Context(), a, err); got != plan.Unreachable || a.Sent {
		t.Errorf("got %v, sent %v (%v), want unreachable: the handshake carried no line", got,
			a.Sent, err)
	}
}

// closedConn is a connection that accepts no bytes.
type closedConn struct{ net.Conn }

func (closedConn) Write([]byte) (int, error) { return 0, net.ErrClosed }

func TestUnwrittenRequestIsSentOnAnotherConnection(t *testing.T) {
	s, conns := start(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	c := clientOf(t, s.URL)
	for i := range 3 {
		a, err := c.Send(t.Context(), lineOf("x"), &Scratch{})
		if err != nil || string(a.Body) != "x" || !a.Sent {
			t.Fatalf("request %d: %+v, %v", i, a, err)
		}
		w := c.transport.(*wire)
		w.idle[0].Conn = closedConn{w.idle[0].Conn}
	}
	if conns.Load() != 3 {
		t.Errorf("%d connections, want 3", conns.Load())
	}
}
