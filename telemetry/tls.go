package telemetry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// TLS configures connections to a server with https. The files are read again when they change.
type TLS struct {
	// CAFile names the file with the authorities that the server's certificate must come from, in
	// PEM. Empty: those of the system.
	CAFile string `yaml:"ca_file"`
	// CertFile names the file with a client certificate in PEM, followed by the intermediate
	// certificates. Empty: none is presented.
	CertFile string `yaml:"cert_file"`
	// KeyFile names the file with the private key of the client certificate in PEM.
	KeyFile string `yaml:"key_file"`
	// ServerName is the name that the server's certificate must have. Empty: the host of the URL.
	ServerName string `yaml:"server_name"`
	// InsecureSkipVerify accepts any certificate. Whoever can answer in the server's place then
	// gets the credentials. Default: false.
	InsecureSkipVerify bool `yaml:"insecure_skip_verify"`
}

// validate reports settings that exclude or require each other.
func (c TLS) validate(scheme string) error {
	switch {
	case c == TLS{}:
		return nil
	case scheme != "https":
		return fmt.Errorf("tls: the url begins with %s://; write https:// or remove tls", scheme)
	case (c.CertFile == "") != (c.KeyFile == ""):
		return fmt.Errorf("tls.cert_file: is %q and tls.key_file %q; give both or none",
			c.CertFile, c.KeyFile)
	case c.InsecureSkipVerify && c.CAFile != "":
		return errors.New("tls.insecure_skip_verify: is true, so ca_file has no effect; " +
			"remove one of them")
	}
	return nil
}

// check loads the client certificate.
func (c TLS) check() error {
	if c.CertFile == "" {
		return nil
	}
	_, err := c.certificate(nil)
	return err
}

func (c TLS) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("tls.cert_file %s, tls.key_file %s: %w", c.CertFile, c.KeyFile, err)
	}
	return &pair, nil
}

// client returns the configuration of connections that trust an authority in PEM; empty: those of
// the system. It loads the client certificate in each handshake.
func (c TLS) client(authority []byte) (*tls.Config, error) {
	secured := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName,
		InsecureSkipVerify: c.InsecureSkipVerify} //nolint:gosec // the operator has asked for it
	if c.CAFile != "" {
		secured.RootCAs = x509.NewCertPool()
		if !secured.RootCAs.AppendCertsFromPEM(authority) {
			return nil, fmt.Errorf("tls.ca_file: %s has no certificate in PEM", c.CAFile)
		}
	}
	if c.CertFile != "" {
		secured.GetClientCertificate = c.certificate
	}
	return secured, nil
}

// largestHeader limits the header of an answer, in bytes.
const largestHeader = 64 << 10

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 2, IdleConnTimeout: 90 * time.Second,
		ForceAttemptHTTP2: true, MaxResponseHeaderBytes: largestHeader,
	}
}
