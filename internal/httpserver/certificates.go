package httpserver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"github.com/tidefill/tidefill/internal/filewatch"
)

// TLSConfig names the files of a server's TLS configuration. They are read again when they change.
type TLSConfig struct {
	// CertFile sets the file with the certificate in PEM, followed by the intermediate
	// certificates. Empty: without TLS.
	CertFile string `yaml:"cert_file"`
	// KeyFile sets the file with the private key of the certificate in PEM.
	KeyFile string `yaml:"key_file"`
	// ClientCAFile sets the file with the authorities of clients in PEM. Clients must then present
	// a certificate of one of them. Empty: clients present none.
	ClientCAFile string `yaml:"client_ca_file"`
}

// Enabled reports whether the server uses TLS.
func (c TLSConfig) Enabled() bool { return c.CertFile != "" }

// Validate reports files that require another one.
func (c TLSConfig) Validate() error {
	var faults []error
	if (c.CertFile == "") != (c.KeyFile == "") {
		faults = append(faults, fmt.Errorf("key_file is %q and cert_file %q; give both or none",
			c.KeyFile, c.CertFile))
	}
	if c.ClientCAFile != "" && c.CertFile == "" {
		faults = append(faults, fmt.Errorf(
			"client_ca_file is %q without a cert_file; clients present certificates over TLS only",
			c.ClientCAFile))
	}
	return errors.Join(faults...)
}

// Certificates holds the certificate of a server and the authorities of its clients. Several
// servers may use it concurrently.
type Certificates struct {
	config TLSConfig

	mu      sync.Mutex // of Reload
	files   *filewatch.Files
	current atomic.Pointer[loadedCertificates]
}

// loadedCertificates is one version of the files.
type loadedCertificates struct {
	required *tls.Config // every client presents a certificate
	optional *tls.Config // a client may present one
}

// LoadCertificates reads the files.
func LoadCertificates(c TLSConfig) (*Certificates, error) {
	certificates := &Certificates{config: c, files: filewatch.New(c.CertFile, c.KeyFile,
		c.ClientCAFile)}
	certificates.files.Changed()
	loaded, err := c.load()
	if err != nil {
		return nil, err
	}
	certificates.current.Store(loaded)
	return certificates, nil
}

func (c TLSConfig) load() (*loadedCertificates, error) {
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("load certificate %s with key %s: %w", c.CertFile, c.KeyFile, err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		NextProtos: []string{"h2", "http/1.1"},
	}
	if c.ClientCAFile == "" {
		return &loadedCertificates{config, config}, nil
	}
	authorities, err := os.ReadFile(c.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("read client authorities: %w", err)
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("client authorities %s: no certificate in PEM in it", c.ClientCAFile)
	}
	required := config.Clone()
	required.ClientAuth = tls.RequireAndVerifyClientCert
	config.ClientAuth = tls.VerifyClientCertIfGiven
	return &loadedCertificates{required, config}, nil
}

// Reload reads the files again if they have changed or if forced. After an error the last version
// remains in use.
func (c *Certificates) Reload(forced bool) (reloaded bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.files.Changed() && !forced {
		return false, nil
	}
	loaded, err := c.config.load()
	if err != nil {
		return false, err
	}
	c.current.Store(loaded)
	return true, nil
}

// Required returns the configuration of a server whose clients must all present a certificate, if
// authorities are configured.
func (c *Certificates) Required() *tls.Config {
	return follow(func() *tls.Config { return c.current.Load().required })
}

// Optional returns the configuration of a server that decides per request, with RequireCertificate.
func (c *Certificates) Optional() *tls.Config {
	return follow(func() *tls.Config { return c.current.Load().optional })
}

// follow returns a configuration that uses the current one for every connection.
func follow(current func() *tls.Config) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return current(), nil
		},
		// net/http requires a certificate, or a function that returns one, before it serves.
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &current().Certificates[0], nil
		},
	}
}

// RequireCertificate refuses requests without a client certificate, except for those to the open
// paths. Without authorities, or on nil Certificates, it returns next.
func (c *Certificates) RequireCertificate(next http.Handler, open ...string) http.Handler {
	if c == nil || c.config.ClientCAFile == "" {
		return next
	}
	free := make(map[string]bool)
	for _, path := range open {
		free[path] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !free[r.URL.Path] && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
			refuse(w, http.StatusForbidden, "invalid_request_error", "certificate_required",
				"This address requires a client certificate of the configured authorities.")
			return
		}
		next.ServeHTTP(w, r)
	})
}
