package flowcontrol

import (
	"maps"
	"slices"
)

// For returns the configuration of the pool of this name that serves these models: the entry of
// Pools of its name or of the first model, by name, that has one; c itself without Pools if none
// has. The name is empty for pools without one.
func (c Config) For(name string, models []string) Config {
	if own, found := c.Own(name, models); found {
		return own
	}
	c.Pools = nil
	return c
}

// Own returns the entry of Pools for the pool of this name that serves these models, if there is
// one.
func (c Config) Own(name string, models []string) (own Config, found bool) {
	if own, found = c.Pools[name]; found {
		return own, true
	}
	for _, model := range slices.Sorted(slices.Values(models)) {
		if own, found = c.Pools[model]; found {
			return own, true
		}
	}
	return Config{}, false
}

// UsesReadings reports whether the policy of any pool, or its shadow, uses readings. If none does,
// nobody has to read metrics.
func (c Config) UsesReadings() bool {
	for own := range maps.Values(c.Pools) {
		if own.UsesReadings() {
			return true
		}
	}
	return NeedsOf(c.Policy).Readings || NeedsOf(c.Shadow.Policy).Readings
}

// UnsharedIterations reports whether iterations may take as long as they need: no interactive
// requests come to the pool, and the policy acts on that.
func (c Config) UnsharedIterations() bool {
	return !c.Shared && NeedsOf(c.Policy).UnsharedIterations
}
