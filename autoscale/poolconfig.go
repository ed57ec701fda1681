package autoscale

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// PoolConfig describes a pool of replicas whose number is decided here.
type PoolConfig struct {
	// Name identifies the pool in metrics, in the API and in ScaledObjects: at most 63 lower-case
	// letters, digits and dashes.
	Name string `yaml:"name"`
	// Models lists the models that the pool serves. A pool without replicas can't be asked for
	// them, and jobs must know that they can wait for it.
	Models []string `yaml:"models"`
	// Role is shared if interactive requests come to the pool too, batch if it serves batch lines
	// alone. Flow control lets lines fill the engines of a batch pool. Default: shared.
	Role Role `yaml:"role"`
	// Min is the least number of replicas. Default: 0.
	Min int `yaml:"min"`
	// Max is the greatest number of replicas. Required.
	Max int `yaml:"max"`
	// Price of a replica per hour, in any currency: only ratios between pools matter. Default: 0,
	// which is the same price for all.
	Price float64 `yaml:"price"`
	// Reclaim is the share of replicas that the provider reclaims in an hour, 0 to 1, for spot
	// instances. Default: 0.
	Reclaim float64 `yaml:"reclaim"`
	// ColdStart is the expected time of a start before any was measured. 0: autoscale.start.cold.
	ColdStart time.Duration `yaml:"cold_start"`
}

// Role says who uses a pool.
type Role string

// The roles.
const (
	RoleShared Role = "shared" // interactive requests, and batch lines
	RoleBatch  Role = "batch"  // batch lines alone
)

var poolName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Validate reports every fault with the path of its field.
func (c PoolConfig) Validate() error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(format, args...))
	}
	if !poolName.MatchString(c.Name) {
		fault("name: is %q, must be 1 to 63 lower-case letters, digits and dashes", c.Name)
	}
	if len(c.Models) == 0 {
		fault("models: is empty; list the models that the pool serves, since a pool without " +
			"replicas can't be asked")
	}
	for i, m := range c.Models {
		if strings.TrimSpace(m) == "" {
			fault("models[%d]: is empty", i)
		}
	}
	if c.Role != "" && c.Role != RoleShared && c.Role != RoleBatch {
		fault("role: is %q, must be shared or batch", c.Role)
	}
	if c.Min < 0 || c.Max < 1 || c.Min > c.Max {
		fault("max: is %d and min %d; max must be at least 1, and min from 0 to max", c.Max, c.Min)
	}
	if !(c.Price >= 0) {
		fault("price: is %v, must not be negative", c.Price)
	}
	if !(c.Reclaim >= 0 && c.Reclaim <= 1) {
		fault("reclaim: is %v, must be from 0 to 1", c.Reclaim)
	}
	if c.ColdStart < 0 {
		fault("cold_start: is %v, must not be negative", c.ColdStart)
	}
	return errors.Join(faults...)
}
