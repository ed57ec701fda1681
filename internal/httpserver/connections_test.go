package httpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func limited(total, perAddress int) Config {
	c := DefaultConfig()
	c.MaxConnections, c.MaxConnectionsPerAddress = total, perAddress
	return c
}

// holding returns a handler that answers /hold after release and everything else at once.
func holding() (handler http.HandlerFunc, entered chan struct{}, release func()) {
	entered, released := make(chan struct{}, 100), make(chan struct{})
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			entered <- struct{}{}
			<-released
		}
		io.WriteString(w, "ok")
	}, entered, func() { close(released) }
}

func TestConnectionsBeyondTheLimitAreRefused(t *testing.T) {
	var logs bytes.Buffer
	handler, entered, release := holding()
	s, address := serve(t, limited(3, 0),
		Options{Logger: slog.New(slog.NewTextHandler(&logs, nil))}, handler)
	busy := make([]*client, 3)
	for i := range busy {
		busy[i] = dial(t, address)
		busy[i].send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n")
		await(t, entered, "the request")
	}
	for range 5 {
		c := dial(t, address)
		c.send("POST /v1/files HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n%s",
			strings.Repeat("x", 1000))
		r, err := http.ReadResponse(c.answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Error struct{ Message, Type, Code string }
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Error.Code != "busy" ||
			body.Error.Type != "server_error" {
			t.Errorf("the body is %+v, %v", body, err)
		}
		if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" ||
			!r.Close {
			t.Errorf("got %d %v", r.StatusCode, r.Header)
		}
		c.closed()
	}
	release()
	for _, c := range busy {
		if status, _ := c.answer(); status != http.StatusOK {
			t.Errorf("a connection within the limit got %d", status)
		}
	}
	s.Close()
	if n := strings.Count(logs.String(), "connections refused"); n != 1 ||
		!strings.Contains(logs.String(), "http.max_connections") {
		t.Errorf("got %d messages: %s", n, &logs)
	}
}

// Idle connections do not keep other clients out.
func TestIdleConnectionsAreClosedForOthers(t *testing.T) {
	handler, entered, release := holding()
	s, address := serve(t, limited(3, 0), Options{}, handler)
	busy := dial(t, address)
	busy.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n")
	await(t, entered, "the request")
	var idle []*client
	for range 10 {
		c := dial(t, address)
		c.send(get)
		if status, _ := c.answer(); status != http.StatusOK {
			t.Fatalf("got %d", status)
		}
		awaitIdle(t, s, min(len(idle)+1, 2))
		idle = append(idle, c)
	}
	for _, c := range idle[:8] { // the oldest first
		c.closed()
	}
	idle[9].send(get)
	if status, _ := idle[9].answer(); status != http.StatusOK {
		t.Errorf("the last idle connection got %d", status)
	}
	release()
	if status, _ := busy.answer(); status != http.StatusOK {
		t.Errorf("the busy connection got %d", status)
	}
	if open := s.connections.count(); open > 3 {
		t.Errorf("%d connections are open", open)
	}
}

// awaitIdle waits until the server counts a number of connections as idle.
func awaitIdle(t *testing.T, s *Server, want int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		s.connections.mu.Lock()
		got := s.connections.idle.Len()
		s.connections.mu.Unlock()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are idle, want %d", got, want)
		}
	}
}

// Connections without a request are closed in favor of others after freshTime.
func TestSilentConnectionsAreClosedForOthers(t *testing.T) {
	handler, _, _ := holding()
	_, address := serve(t, limited(3, 0), Options{}, handler)
	silent := []*client{dial(t, address), dial(t, address), dial(t, address)}
	silent[0].send("GET / HTTP/1.1\r\nHost: a\r\nX-")
	for deadline := time.Now().Add(freshTime + 8*time.Second); ; time.Sleep(
		100 * time.Millisecond) {
		c := dial(t, address)
		c.send(get)
		if status, _ := c.answer(); status == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("silent connections keep others out")
		}
	}
	silent[0].closed()
}

// otherAddress returns an address of this machine that is not a loopback one; empty: it has none.
func otherAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() &&
			!prefix.Addr().IsLoopback() {
			return prefix.Addr().String()
		}
	}
	return ""
}

func TestCountedAddress(t *testing.T) {
	c := connections{proxies: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}
	for address, want := range map[string]string{
		"192.0.2.7":          "192.0.2.7",
		"::ffff:192.0.2.7":   "192.0.2.7",
		"2001:db8:1:2:3::4":  "2001:db8:1:2::",
		"2001:db8:1:2:ff::1": "2001:db8:1:2::",
		"127.0.0.1":          "",
		"::1":                "",
		"10.1.2.3":           "",
		"10.2.2.3":           "10.2.2.3",
		"fe80::1%eth0":       "fe80::",
	} {
		got := c.countedAddress(netip.MustParseAddr(address))
		if got.IsValid() != (want != "") || got.IsValid() && got.String() != want {
			t.Errorf("%s is counted as %v, want %q", address, got, want)
		}
	}
}

// At its limit, an address loses its own idle connections and no connections of others.
func TestConnectionsPerAddress(t *testing.T) {
	c := &connections{max: 10, maxPerAddress: 2, counts: map[netip.Addr]int{}}
	open := func(address string) (*conn, exceededLimit) {
		return c.admit(remoteConn{address: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(
			address))})
	}
	first, _ := open("192.0.2.1:1")
	second, _ := open("192.0.2.1:2")
	other, _ := open("192.0.2.2:1")
	for _, serving := range []*conn{first, second, other} {
		c.stateChanged(serving, http.StateActive)
	}
	if _, full := open("192.0.2.1:3"); full != addressLimit {
		t.Errorf("a third connection of the address: %q", full)
	}
	c.stateChanged(other, http.StateIdle)
	if _, full := open("192.0.2.1:3"); full != addressLimit {
		t.Errorf("an idle connection of another address was closed: %q", full)
	}
	c.stateChanged(second, http.StateIdle)
	if third, full := open("192.0.2.1:3"); full != noLimit || !second.closed || first.closed ||
		other.closed {
		t.Errorf("got %v, %q", third, full)
	}
	if c.count() != 3 || len(c.counts) != 2 {
		t.Errorf("%d open, counts %v", c.count(), c.counts)
	}
	if end, full := c.begin("192.0.2.1:9"); full != addressLimit {
		t.Errorf("a request of HTTP/2 exceeded the limit: %q", full)
		end()
	}
	other.Close()
	other.Close()
	if c.count() != 2 || c.counts[netip.MustParseAddr("192.0.2.2")] != 0 {
		t.Errorf("%d open, counts %v", c.count(), c.counts)
	}
}

// remoteConn is a connection that has only a remote address.
type remoteConn struct {
	net.Conn
	address net.Addr
}

func (c remoteConn) RemoteAddr() net.Addr { return c.address }
func (c remoteConn) Close() error         { return nil }

func TestPerAddressLimitOverTheNetwork(t *testing.T) {
	host := otherAddress(t)
	if host == "" {
		t.Log(
			"this machine has only loopback addresses; TestConnectionsPerAddress covers the limit")
		return
	}
	handler, entered, release := holding()
	defer release()
	_, address := serveOn(t, net.JoinHostPort(host, "0"), limited(10, 1), Options{}, handler)
	dial(t, address).send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n")
	await(t, entered, "the request")
	second := dial(t, address)
	second.send(get)
	if status, _ := second.answer(); status != http.StatusServiceUnavailable {
		t.Errorf("the second connection of an address got %d", status)
	}
}

func TestDescriptorsLimitConnections(t *testing.T) {
	for _, test := range []struct {
		configured int
		files      uint64
		want       int
		lowered    bool
	}{
		{1024, 0, 1024, false}, {1024, 4096, 1024, false}, {1024, 1024, 256, true},
		{0, 20000, 5000, false}, {0, 1 << 63, 1 << 20, false},
	} {
		c, lowered := Config{MaxConnections: test.configured}.Within(test.files)
		if c.MaxConnections != test.want || lowered != test.lowered {
			t.Errorf("%d connections within %d files: got %d, %v", test.configured, test.files,
				c.MaxConnections, lowered)
		}
	}
	if OpenFiles() == 0 {
		t.Error("the limit of open files is unknown")
	}
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	c := Config{
		MaxConnections: -1,
		Proxies:        []string{"10.0.0.0/8", "::1", "lb.example.com"},
		Hosts:          []string{"a", "a:80"},
		Origins:        []string{"https://a", "a", "https://a/"},
	}
	err := fmt.Sprint(c.Validate())
	for _, want := range []string{"max_connections is",
		"grace", "body_timeout", "proxies[2]", "hosts[1]", "origins[1]", "origins[2]"} {
		if !strings.Contains(err, want) {
			t.Errorf("the errors lack %s: %s", want, err)
		}
	}
	if strings.Count(err, "\n") != 6 {
		t.Errorf("too many errors: %s", err)
	}
}
