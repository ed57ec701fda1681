package redis

import (
	"errors"
	"fmt"
)

// CheckFiles reads the files that the configuration names, and reports every fault with the path of
// its field. It sends nothing and reads no environment variable.
func (c Config) CheckFiles() error {
	if c.URL == "" {
		return nil
	}
	var faults []error
	if c.PasswordEnv == "" {
		if _, err := c.password(); err != nil {
			faults = append(faults, fmt.Errorf("password_file: %w", err))
		}
	}
	if a, err := parseURL(c.URL); err == nil {
		if _, err := c.encryption(a); err != nil {
			faults = append(faults, fmt.Errorf("ca_file: %w", err))
		}
	}
	return errors.Join(faults...)
}
