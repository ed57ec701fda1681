package client

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Trust names the files, in PEM, by which a client and a daemon know each other over TLS. Its zero
// value trusts the system's authorities and shows no certificate.
type Trust struct {
	CAFile            string // authorities of the daemon, besides the system's
	CertFile, KeyFile string // the client's own certificate, for daemons that ask for one
}

func (t Trust) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		authorities, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the daemon's authorities: %w", err)
		}
		if c.RootCAs, err = x509.SystemCertPool(); err != nil {
			c.RootCAs = x509.NewCertPool() // a system without any
		}
		if !c.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("the daemon's authorities %s: no certificate in PEM in it",
				t.CAFile)
		}
	}
	if t.CertFile != "" || t.KeyFile != "" {
		own, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("load the client certificate %q with key %q: %w", t.CertFile,
				t.KeyFile, err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}
