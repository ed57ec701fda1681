package httpserver

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tidefill/tidefill/internal/httpserver/tlstest"
)

// tlsFiles is a directory with the TLS files of a server.
type tlsFiles struct {
	TLSConfig
	authority *tlstest.Authority
	dir       string
	roots     *x509.CertPool
}

func newTLSFiles(t *testing.T, clients bool) *tlsFiles {
	t.Helper()
	dir := t.TempDir()
	s := &tlsFiles{authority: tlstest.NewAuthority(t), dir: dir, roots: x509.NewCertPool()}
	s.CertFile, s.KeyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	s.authority.WriteCA(filepath.Join(dir, "ca.pem"))
	if clients {
		s.ClientCAFile = filepath.Join(dir, "ca.pem")
	}
	authority, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	s.roots.AppendCertsFromPEM(authority)
	return s
}

// client returns a client that trusts the authority. With own it presents a certificate.
func (s *tlsFiles) client(t *testing.T, own bool) *http.Client {
	t.Helper()
	c := &tls.Config{RootCAs: s.roots}
	if own {
		cert, key := filepath.Join(s.dir, "own.pem"), filepath.Join(s.dir, "own.key")
		s.authority.WritePair(cert, key)
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func hello(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }

func TestCertificatesAreReloaded(t *testing.T) {
	s := newTLSFiles(t, false)
	first := s.authority.WritePair(s.CertFile, s.KeyFile)
	certificates, err := LoadCertificates(s.TLSConfig)
	if err != nil {
		t.Fatal(err)
	}
	_, address := serve(t, DefaultConfig(), Options{TLS: certificates.Required()}, hello)
	shown := func() string {
		t.Helper()
		c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: s.roots})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if version := c.ConnectionState().Version; version < tls.VersionTLS12 {
			t.Errorf("uses TLS version %x", version)
		}
		return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	if got := shown(); got != first {
		t.Errorf("presents certificate %s, want %s", got, first)
	}
	if reloaded, err := certificates.Reload(false); reloaded || err != nil {
		t.Errorf("nothing changed and Reload returned %v, %v", reloaded, err)
	}
	if err := os.WriteFile(s.CertFile, []byte("incomplete"), 0o600); err != nil {
		t.Fatal(err)
	}
	if reloaded, err := certificates.Reload(false); reloaded || err == nil ||
		!strings.Contains(err.Error(), s.CertFile) {
		t.Errorf("a broken file: %v, %v", reloaded, err)
	}
	if got := shown(); got != first {
		t.Errorf("after a broken file it presents %s, want %s", got, first)
	}
	second := s.authority.WritePair(s.CertFile, s.KeyFile)
	if reloaded, err := certificates.Reload(false); !reloaded || err != nil {
		t.Errorf("a new pair: %v, %v", reloaded, err)
	}
	if got := shown(); got != second {
		t.Errorf("presents certificate %s, want %s", got, second)
	}
	if _, err := tls.Dial("tcp", address,
		&tls.Config{RootCAs: s.roots, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
}

func TestClientCertificates(t *testing.T) {
	s := newTLSFiles(t, true)
	s.authority.WritePair(s.CertFile, s.KeyFile)
	certificates, err := LoadCertificates(s.TLSConfig)
	if err != nil {
		t.Fatal(err)
	}
	_, api := serve(t, DefaultConfig(), Options{TLS: certificates.Required()}, hello)
	_, admin := serve(t, DefaultConfig(), Options{TLS: certificates.Optional()},
		certificates.RequireCertificate(http.HandlerFunc(hello), "/readyz").ServeHTTP)
	status := func(c *http.Client, url string) int {
		answer, err := c.Get(url)
		if err != nil {
			return 0
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	for _, test := range []struct {
		url       string
		own, none int
	}{
		{"https://" + api + "/", 200, 0},
		{"https://" + admin + "/metrics", 200, 403},
		{"https://" + admin + "/readyz", 200, 200},
	} {
		if got := status(s.client(t, true), test.url); got != test.own {
			t.Errorf("%s with a certificate: got %d, want %d", test.url, got, test.own)
		}
		if got := status(s.client(t, false), test.url); got != test.none {
			t.Errorf("%s without: got %d, want %d", test.url, got, test.none)
		}
	}
}

// The limit on connections also limits requests that share one.
func TestHTTP2RequestsAreLimited(t *testing.T) {
	s := newTLSFiles(t, false)
	s.authority.WritePair(s.CertFile, s.KeyFile)
	certificates, err := LoadCertificates(s.TLSConfig)
	if err != nil {
		t.Fatal(err)
	}
	handler, entered, release := holding()
	_, address := serve(t, limited(4, 0), Options{TLS: certificates.Required()}, handler)
	client := s.client(t, false)
	get := func(path string) (int, string) {
		answer, err := client.Get("https://" + address + path)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		answer.Body.Close()
		return answer.StatusCode, answer.Proto
	}
	if status, proto := get("/"); status != 200 || proto != "HTTP/2.0" {
		t.Fatalf("got %d over %s", status, proto)
	}
	var held sync.WaitGroup
	for range 3 { // in addition to the connection
		held.Go(func() { get("/hold") })
		await(t, entered, "the request")
	}
	if status, _ := get("/"); status != http.StatusServiceUnavailable {
		t.Errorf("the fourth concurrent request got %d", status)
	}
	release()
	held.Wait()
	if status, _ := get("/"); status != http.StatusOK {
		t.Errorf("afterwards got %d", status)
	}
}

func TestTLSConfig(t *testing.T) {
	for _, c := range []TLSConfig{{CertFile: "a"}, {KeyFile: "a"}, {ClientCAFile: "a"}} {
		if c.Validate() == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	os.WriteFile(empty, nil, 0o600)
	s := newTLSFiles(t, true)
	s.authority.WritePair(s.CertFile, s.KeyFile)
	s.ClientCAFile = empty
	if _, err := LoadCertificates(s.TLSConfig); err == nil || !strings.Contains(err.Error(),
		empty) {
		t.Errorf("no authorities: %v", err)
	}
}
