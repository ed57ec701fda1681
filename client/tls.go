package client

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

func (o Options) tls() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		authorities, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the daemon's authorities: %w", err)
		}
		if c.RootCAs, err = x509.SystemCertPool(); err != nil {
			c.RootCAs = x509.NewCertPool() // the system has none
		}
		if !c.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("read the daemon's authorities: no PEM certificate in %s",
				o.CAFile)
		}
	}
	if o.CertFile != "" || o.KeyFile != "" {
		own, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("load the client certificate %q with key %q: %w", o.CertFile,
				o.KeyFile, err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}
