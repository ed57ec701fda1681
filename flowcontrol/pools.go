package flowcontrol

import (
	"fmt"
	"maps"
	"slices"
)

// For is the configuration of the pool that serves some models: that of Pools under a model's name,
// of the first by name that has one, or else the one that all pools have.
func (c Config) For(models []string) Config {
	if own, found := c.Own(models); found {
		return own
	}
	c.Pools = nil
	return c
}

// Own is what the pool of some models has of its own, if it has.
func (c Config) Own(models []string) (own Config, found bool) {
	for _, model := range slices.Sorted(slices.Values(models)) {
		if own, found = c.Pools[model]; found {
			return own, true
		}
	}
	return Config{}, false
}

// validatePools reports what is wrong in what pools have of their own.
func (c Config) validatePools(all *faults) {
	for _, model := range slices.Sorted(maps.Keys(c.Pools)) {
		own := c.Pools[model]
		if own.Pools != nil {
			all.add("pools."+model+".pools",
				"a pool has no pools; write them below flowcontrol.pools")
			continue
		}
		if err := own.Validate(); err != nil {
			for _, fault := range err.(interface{ Unwrap() []error }).Unwrap() {
				*all = append(*all, fmt.Errorf("pools.%s.%w", model, fault))
			}
		}
	}
}

// HeedsReadings says whether the policy of any pool makes use of readings. Where none does, nobody
// need look.
func (c Config) HeedsReadings() bool {
	for _, own := range c.Pools {
		if heedsReadings(own.Policy) {
			return true
		}
	}
	return heedsReadings(c.Policy)
}
