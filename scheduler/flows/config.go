package flows

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// The classes of the default configuration.
const (
	Critical = "critical"
	Standard = "standard"
	Flex     = "flex"
)

// Config sets how the interactive requests of a pool are ordered. Start from DefaultConfig.
type Config struct {
	// Policy chooses the class whose request starts next: strict (the first listed class that has
	// one, but for the places reserved for others), weighted (by the requests in flight in
	// proportion to the reserve), or a registered one. Default: strict.
	Policy string `yaml:"policy"`
	// Classes lists the classes of requests, the most important first. Batch lines come after the
	// last. Default: critical, standard and flex.
	Classes []ClassConfig `yaml:"classes"`
	// MaxWaiting limits the requests that wait in a pool. Beyond it the newest one of the last
	// class is answered 429. Default: 1000.
	MaxWaiting int `yaml:"max_waiting"`
	// TenantWeights sets how much work a tenant gets of a use case compared with others, by name,
	// between 0.001 and 1000. Default: 1 for each.
	TenantWeights map[string]float64 `yaml:"tenant_weights,omitempty"`
}

// ClassConfig describes a class of requests.
type ClassConfig struct {
	// Name identifies the class in use cases, metrics and headers.
	Name string `yaml:"name"`
	// Reserve is the share of a pool's places that is kept for the class, 0 to 1. Those of a class
	// that comes before stay free while it has no request to start. Those of a class that comes
	// after are kept while it has one. All together are at most 1. Default: 0.
	Reserve float64 `yaml:"reserve"`
	// MaxWait limits the time for which a request waits before it is answered 429. A request with
	// a deadline of its own waits until then. Required.
	MaxWait time.Duration `yaml:"max_wait"`
}

// DefaultConfig has the classes critical, standard and flex.
func DefaultConfig() Config {
	return Config{
		Policy: "strict",
		Classes: []ClassConfig{
			{Name: Critical, Reserve: 0.2, MaxWait: time.Minute},
			{Name: Standard, Reserve: 0.05, MaxWait: 20 * time.Second},
			{Name: Flex, MaxWait: 10 * time.Minute},
		},
		MaxWaiting: 1000,
	}
}

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(format, args...))
	}
	if _, err := NewPolicy(c.Policy); err != nil {
		fault("policy: %w", err)
	}
	if len(c.Classes) == 0 {
		fault("classes: is empty; list at least one")
	}
	names, reserved := map[string]bool{}, 0.0
	for i, class := range c.Classes {
		path := fmt.Sprintf("classes[%d].", i)
		if class.Name == "" || names[class.Name] {
			fault("%sname: is %q, must be unique and not empty", path, class.Name)
		}
		names[class.Name] = true
		if !(class.Reserve >= 0 && class.Reserve <= 1) {
			fault("%sreserve: is %v, must be from 0 to 1", path, class.Reserve)
			continue
		}
		reserved += class.Reserve
		if class.MaxWait <= 0 {
			fault("%smax_wait: is %v, must be above 0", path, class.MaxWait)
		}
	}
	if reserved > 1 {
		fault("classes: their reserves are %.2f together, at most 1", reserved)
	}
	if c.MaxWaiting < 1 {
		fault("max_waiting: is %d, must be at least 1", c.MaxWaiting)
	}
	for _, tenant := range slices.Sorted(maps.Keys(c.TenantWeights)) {
		if w := c.TenantWeights[tenant]; !(w >= 0.001 && w <= 1000) {
			fault("tenant_weights.%s: is %v, must be between 0.001 and 1000", tenant, w)
		}
	}
	return errors.Join(faults...)
}

// Index returns the position of a class; that of the last one for an unknown name.
func (c Config) Index(name string) int {
	i := slices.IndexFunc(c.Classes, func(class ClassConfig) bool { return class.Name == name })
	if i < 0 {
		return len(c.Classes) - 1
	}
	return i
}

// Class returns the class of a name; the last one for an unknown name.
func (c Config) Class(name string) ClassConfig { return c.Classes[c.Index(name)] }

// Lists reports whether the class of a name is configured.
func (c Config) Lists(name string) bool { return c.Class(name).Name == name }
