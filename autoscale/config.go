package autoscale

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Config says how replicas are asked for. Start from DefaultConfig.
type Config struct {
	// Policy is the law.
	Policy string `yaml:"policy"`
}

// DefaultConfig asks for replicas by deadline.
func DefaultConfig() Config { return Config{Policy: "static"} }

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var faults []error
	if err := known(c.Policy); err != nil {
		faults = append(faults, fmt.Errorf("policy: %w", err))
	}
	return errors.Join(faults...)
}

// Policies lists the names that Config.Policy knows.
func Policies() []string { return slices.Sorted(maps.Keys(policies)) }
