package telemetry

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const emptyReply = `{"status":"success","data":{"resultType":"vector","result":[]}}`

// write writes a file in dir and returns its path.
func write(t testing.TB, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ask sends one query with a configuration of access and returns its error.
func ask(t testing.TB, a *access) error {
	t.Helper()
	q := promQuery{cfg: a.cfg, access: a, log: slog.New(slog.DiscardHandler),
		chosen: map[string]string{}}
	_, err := q.query(t.Context(), "up")
	return err
}

func accessTo(t testing.TB, url string, change func(*Prometheus)) *access {
	t.Helper()
	cfg := DefaultConfig().Prometheus
	cfg.URL = url
	change(&cfg)
	if err := cfg.validateAccess(); err != nil {
		t.Fatal(err)
	}
	a, err := newAccess(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestCredentialsAndHeadersAreSent(t *testing.T) {
	t.Setenv("PROM_SECRET", "from-env")
	dir := t.TempDir()
	file := write(t, dir, "secret", "from-file\n")
	for name, c := range map[string]struct {
		change func(*Prometheus)
		want   string
	}{
		"none":       {func(*Prometheus) {}, ""},
		"token_env":  {func(p *Prometheus) { p.TokenEnv = "PROM_SECRET" }, "Bearer from-env"},
		"token_file": {func(p *Prometheus) { p.TokenFile = file }, "Bearer from-file"},
		"password_env": {func(p *Prometheus) {
			p.BasicAuth = BasicAuth{Username: "u", PasswordEnv: "PROM_SECRET"}
		}, "Basic dTpmcm9tLWVudg=="},
		"password_file": {func(p *Prometheus) {
			p.BasicAuth = BasicAuth{Username: "u", PasswordFile: file}
		}, "Basic dTpmcm9tLWZpbGU="},
	} {
		t.Run(name, func(t *testing.T) {
			var got http.Header
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
				r *http.Request) {
				got = r.Header.Clone()
				fmt.Fprint(w, emptyReply)
			}))
			defer server.Close()
			a := accessTo(t, server.URL, func(p *Prometheus) {
				p.Headers = map[string]string{"x-scope-orgid": "team-a"}
				c.change(p)
			})
			if err := ask(t, a); err != nil {
				t.Fatal(err)
			}
			if got.Get("Authorization") != c.want || got.Get("X-Scope-OrgID") != "team-a" {
				t.Errorf("got %q and tenant %q, want %q", got.Get("Authorization"),
					got.Get("X-Scope-OrgID"), c.want)
			}
		})
	}
}

func TestATokenFileIsReadAgain(t *testing.T) {
	valid := "old-token"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+valid {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, emptyReply)
	}))
	defer server.Close()
	dir := t.TempDir()
	file := write(t, dir, "token", valid)
	a := accessTo(t, server.URL, func(p *Prometheus) { p.TokenFile = file })
	if err := ask(t, a); err != nil {
		t.Fatal(err)
	}
	valid = "new-token"
	if err := ask(t, a); stateOf(err) != stateRefused {
		t.Errorf("an old token: got %v, want it refused", err)
	}
	write(t, dir, "token", valid+"\n")
	if err := ask(t, a); err != nil {
		t.Errorf("the new token: %v", err)
	}
	for content, want := range map[string]string{
		"": "is empty", "two\nlines": "control character",
	} {
		write(t, dir, "token", content)
		if err := ask(t, a); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "lines\n") {
			t.Errorf("the token %q: got %v, want %q", content, err, want)
		}
	}
}

// A server that repeats what it was sent does not bring secrets into errors.
func TestSecretsAreNotInErrors(t *testing.T) {
	t.Setenv("PROM_SECRET", "s3cr3t-value")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		switch {
		case strings.HasPrefix(r.URL.Path, "/moved"):
			http.Redirect(w, r, "http://other.invalid/?"+r.Header.Get("Authorization"),
				http.StatusTemporaryRedirect)
			return
		case strings.HasPrefix(r.URL.Path, "/metrics"):
			w.WriteHeader(http.StatusBadGateway)
		}
		fmt.Fprintf(w, `{"status":"error","error":"no: %s %s"}`, r.Header.Get("Authorization"),
			password)
	}))
	defer server.Close()
	for _, basic := range []bool{false, true} {
		for _, path := range []string{"", "/moved"} {
			a := accessTo(t, server.URL+path, func(p *Prometheus) {
				if p.TokenEnv = "PROM_SECRET"; basic {
					p.TokenEnv = ""
					p.BasicAuth = BasicAuth{Username: "u", PasswordEnv: "PROM_SECRET"}
				}
			})
			err := ask(t, a)
			if err == nil || strings.Contains(err.Error(), "s3cr3t") ||
				strings.Contains(err.Error(), "dTpzM2NyM3Q") {
				t.Errorf("basic %v, path %q: got %v", basic, path, err)
			}
		}
	}
	user := strings.Replace(server.URL, "http://", "http://user:s3cr3t-value@", 1)
	m := metrics{runner: Runner{Name: "r", Base: user, Metrics: user + "/metrics",
		Header: http.Header{"Authorization": {"Bearer s3cr3t-value"}}}, client: http.DefaultClient}
	if _, err := m.read(t.Context()); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("a metrics page: got %v", err)
	}
}

// A page that can't be reached is named without the query, which may hold a token.
func TestQueriesAreNotInErrors(t *testing.T) {
	m, _ := newMetrics(t, "http://u:hunter2@127.0.0.1:1")
	m.runner.Metrics += "?token=s3cret"
	_, err := m.read(t.Context())
	if err == nil || stateOf(err) != stateAway || strings.Contains(err.Error(), "s3cret") ||
		strings.Contains(err.Error(), "hunter2") ||
		!strings.Contains(err.Error(), "@127.0.0.1:1/metrics") {
		t.Errorf("got %v, want the page without secrets, and the state %q", err, stateAway)
	}
}

func TestAccessThatCantWorkRefusesToStart(t *testing.T) {
	dir := t.TempDir()
	bad := write(t, dir, "bad.pem", "no certificate")
	for want, change := range map[string]func(*Config){
		"telemetry.prometheus.token_env: the environment variable PROM_NONE": func(c *Config) {
			c.Prometheus.TokenEnv = "PROM_NONE"
		},
		"telemetry.prometheus.token_file: open": func(c *Config) {
			c.Prometheus.TokenFile = filepath.Join(dir, "none")
		},
		"telemetry.prometheus.tls.ca_file: " + bad: func(c *Config) {
			c.Prometheus.TLS.CAFile = bad
		},
		"telemetry.prometheus.tls.cert_file " + bad: func(c *Config) {
			c.Prometheus.TLS.CertFile, c.Prometheus.TLS.KeyFile = bad, bad
		},
	} {
		cfg := DefaultConfig()
		cfg.Prometheus.URL = "https://p"
		change(&cfg)
		if _, err := New(cfg, Deps{Logger: slog.New(slog.DiscardHandler)}); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestValidateOfAccessNamesTheKey(t *testing.T) {
	basic := BasicAuth{Username: "u", PasswordEnv: "P"}
	for want, change := range map[string]func(*Prometheus){
		"url: has a user":         func(p *Prometheus) { p.URL = "http://u:hidden@p" },
		"url: \"the value\"":      func(p *Prometheus) { p.URL = "ftp://u:hidden@p" },
		"url: has a part after ?": func(p *Prometheus) { p.URL = "http://p?token=hidden" },
		"token_file:":             func(p *Prometheus) { p.TokenEnv, p.TokenFile = "A", "b" },
		"basic_auth: is":          func(p *Prometheus) { p.TokenEnv, p.BasicAuth = "A", basic },
		"basic_auth.username: is": func(p *Prometheus) { p.BasicAuth.PasswordEnv = "A" },
		"basic_auth.username: has": func(p *Prometheus) {
			p.BasicAuth = BasicAuth{Username: "a:b", PasswordEnv: "P"}
		},
		"basic_auth.password_file:": func(p *Prometheus) { p.BasicAuth.Username = "u" },
		"headers: \"a b\"": func(p *Prometheus) {
			p.Headers = map[string]string{"a b": "c"}
		},
		"headers.authorization:": func(p *Prometheus) {
			p.Headers = map[string]string{"authorization": "hidden"}
		},
		"headers.X:":     func(p *Prometheus) { p.Headers = map[string]string{"X": "hid\nden"} },
		"tls: the url":   func(p *Prometheus) { p.TLS.CAFile = "f" },
		"tls.cert_file:": func(p *Prometheus) { p.URL, p.TLS.CertFile = "https://p", "f" },
		"tls.insecure_skip_verify:": func(p *Prometheus) {
			p.URL, p.TLS = "https://p", TLS{CAFile: "f", InsecureSkipVerify: true}
		},
	} {
		cfg := DefaultConfig()
		cfg.Prometheus.URL = "http://p"
		change(&cfg.Prometheus)
		err := cfg.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), "prometheus."+want) ||
			strings.Contains(err.Error(), "hidden") {
			t.Errorf("got %v, want a fault of %s", err, want)
		}
	}
}

// authority issues certificates for 127.0.0.1.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	text        string // in PEM
}

func newAuthority(t testing.TB) authority {
	t.Helper()
	a := authority{certificate: &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true,
		Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}}
	var der []byte
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err == nil {
		der, err = x509.CreateCertificate(rand.Reader, a.certificate, a.certificate,
			&a.key.PublicKey, a.key)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.text = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

func (a authority) issue(t testing.TB) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"prometheus.internal"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, of, a.certificate, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

// serve starts a server with a certificate of an authority, whose clients must have one of another.
func serve(t testing.TB, of, clients authority) string {
	t.Helper()
	certificate, key := of.issue(t)
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		fmt.Fprint(w, emptyReply)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: x509.NewCertPool(),
		ClientAuth: tls.RequireAndVerifyClientCert}
	server.TLS.ClientCAs.AppendCertsFromPEM([]byte(clients.text))
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func TestPrivateAuthorityAndClientCertificate(t *testing.T) {
	private, clients, another := newAuthority(t), newAuthority(t), newAuthority(t)
	server := serve(t, private, clients)
	dir := t.TempDir()
	certificate, key := clients.issue(t)
	ca := write(t, dir, "ca.pem", private.text)
	cert, keyFile := write(t, dir, "cert.pem", certificate), write(t, dir, "key.pem", key)
	full := TLS{CAFile: ca, CertFile: cert, KeyFile: keyFile}
	for name, c := range map[string]struct {
		tls  TLS
		want string // empty: it works
	}{
		"both":                      {full, ""},
		"no authority":              {TLS{CertFile: cert, KeyFile: keyFile}, "unknown authority"},
		"no client certificate":     {TLS{CAFile: ca}, "certificate required"},
		"another name of the right": {TLS{ca, cert, keyFile, "prometheus.internal", false}, ""},
		"a wrong name":              {TLS{ca, cert, keyFile, "x.internal", false}, "x.internal"},
		"not verified":              {TLS{"", cert, keyFile, "", true}, ""},
	} {
		a := accessTo(t, server, func(p *Prometheus) { p.TLS = c.tls })
		err := ask(t, a)
		a.close()
		if c.want == "" && err != nil ||
			c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}

	// Files that are replaced count from the next connection on.
	a := accessTo(t, server, func(p *Prometheus) { p.TLS = full })
	if err := ask(t, a); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "ca.pem", another.text)
	if err := ask(t, a); err == nil {
		t.Error("a server of an authority that was removed is trusted")
	}
	write(t, dir, "ca.pem", private.text)
	other, otherKey := another.issue(t)
	write(t, dir, "cert.pem", other)
	write(t, dir, "key.pem", otherKey)
	if err := ask(t, a); err == nil {
		t.Error("the client certificate is not read again")
	}
}
