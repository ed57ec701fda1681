package httpserver

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestHosts(t *testing.T) {
	g, err := newGuard(Config{Hosts: []string{"Tidefill.example.com", "*.internal"}},
		Options{CheckHost: true})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"": true, "localhost": true, "localhost:8080": true, "LOCALHOST.": true,
		"a.localhost:1":  true,
		"127.0.0.1:8080": true, "127.0.0.1": true, "[::1]:8080": true, "[::1]": true,
		"10.1.2.3:80":          true,
		"tidefill.example.com": true, "tidefill.example.com.:80": true, "a.internal": true,
		"a.b.internal:1":   true,
		"evil.example.com": false, "localhost.evil.com": false, "127.0.0.1.evil.com:8080": false,
		"internal":     false,
		"evilinternal": false, "xtidefill.example.com": false, "localhost@evil.com": false,
	} {
		if got := g.knows(host); got != want {
			t.Errorf("%q: got %v, want %v", host, got, want)
		}
	}
}

func TestGuard(t *testing.T) {
	const evil = "https://evil.example.com"
	for name, test := range map[string]struct {
		method, host string
		header       []string
		api, admin   int
	}{
		"a client without a browser": {"POST", "127.0.0.1", nil, 200, 200},
		"a page that is typed in": {"GET", "localhost:8080", []string{"Sec-Fetch-Site",
			"none"}, 200, 200},
		"the server's own page": {"POST", "localhost:8080", []string{"Sec-Fetch-Site",
			"same-origin", "Origin", "http://localhost:8080"}, 200, 200},
		"an older browser's own page": {"POST", "localhost:8080", []string{"Origin",
			"http://localhost:8080"}, 200, 200},
		"a rebound name": {"GET", "evil.example.com", []string{"Sec-Fetch-Site",
			"same-origin"}, 421, 421},
		"a cross-site form": {"POST", "127.0.0.1:8080", []string{"Sec-Fetch-Site",
			"cross-site", "Origin", evil}, 403, 403},
		"an older browser's form": {"POST", "127.0.0.1:8080", []string{"Origin", evil}, 403,
			403},
		"a sandboxed page": {"POST", "127.0.0.1:8080", []string{"Origin", "null"},
			403, 403},
		"another port of the machine": {"DELETE", "localhost:8080", []string{"Sec-Fetch-Site",
			"same-site", "Origin", "http://localhost:3000"}, 403, 403},
		"a trusted page": {"POST", "127.0.0.1:8080", []string{"Sec-Fetch-Site",
			"cross-site", "Origin", "https://console.example.com"}, 200, 403},
		"an image of another site": {"GET", "127.0.0.1:8080", []string{"Sec-Fetch-Site",
			"cross-site"}, 200, 403},
		"the emulation of another verb": {"PUT", "127.0.0.1:8080", []string{"Sec-Fetch-Site",
			"cross-site", "Origin", evil}, 403, 403},
		"HTTP/1.0, which has no host": {"GET", "", nil, 200, 200},
		"a preflight, which gets no yes": {"OPTIONS", "127.0.0.1:8080", []string{"Sec-Fetch-Site",
			"cross-site", "Origin", evil}, 200, 403},
	} {
		for _, admin := range []bool{false, true} {
			g, err := newGuard(Config{Origins: []string{"https://console.example.com"}},
				Options{CheckHost: true, RefuseCrossSite: admin})
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(test.method, "/", nil)
			r.Host = test.host
			for i := 0; i < len(test.header); i += 2 {
				r.Header.Set(test.header[i], test.header[i+1])
			}
			w := httptest.NewRecorder()
			g.protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w,
				r)
			want := test.api
			if admin {
				want = test.admin
			}
			if w.Code != want {
				t.Errorf("%s, admin %v: got %d, want %d", name, admin, w.Code, want)
			}
		}
	}
}

// A server that requires a key accepts every host name.
func TestHostsAreUncheckedWithKeys(t *testing.T) {
	_, address := serve(t, DefaultConfig(), Options{}, func(http.ResponseWriter, *http.Request) {})
	c := dial(t, address)
	c.send("GET / HTTP/1.1\r\nHost: any.example.com\r\n\r\n")
	if status, _ := c.answer(); status != http.StatusOK {
		t.Errorf("got %d", status)
	}
}

func TestIsLoopback(t *testing.T) {
	for _, address := range []string{"127.0.0.1:1", "localhost:1", "[::1]:1"} {
		if !IsLoopback(address) {
			t.Errorf("%s counts as reachable by others", address)
		}
	}
	for _, address := range []string{":1", "0.0.0.0:1", "[::]:1", "10.0.0.1:1", "example.com:1"} {
		if IsLoopback(address) {
			t.Errorf("%s counts as loopback", address)
		}
	}
}
