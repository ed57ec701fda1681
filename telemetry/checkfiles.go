package telemetry

import (
	"errors"
	"fmt"
	"os"
)

// CheckFiles reads the files that the configuration names, as New does, and reports every fault
// with the path of its field. It sends nothing and reads no environment variable.
func (c Config) CheckFiles() error {
	var faults []error
	if _, err := loadSignals(c.Signals); err != nil {
		faults = append(faults, fmt.Errorf("signals: %w", err))
	}
	p := c.Prometheus
	if p.URL == "" {
		return errors.Join(faults...)
	}
	add := func(err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("prometheus.%w", err))
		}
	}
	if p.TokenFile != "" {
		_, err := secret("token", "", p.TokenFile)
		add(err)
	}
	if p.BasicAuth.PasswordFile != "" {
		_, err := secret("basic_auth.password", "", p.BasicAuth.PasswordFile)
		add(err)
	}
	if p.TLS.CAFile != "" {
		authority, err := os.ReadFile(p.TLS.CAFile)
		if err == nil {
			_, err = p.TLS.client(authority)
			add(err)
		} else {
			add(fmt.Errorf("tls.ca_file: %w", err))
		}
	}
	add(p.TLS.check())
	return errors.Join(faults...)
}
