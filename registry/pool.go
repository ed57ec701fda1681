package registry

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Pool is a logical group of runners that serve the same models.
type Pool struct {
	// Name identifies the pool in metrics, in the API and in ScaledObjects: at most 63 lower-case
	// letters, digits and dashes.
	Name string `yaml:"name"`
	// Models lists the models that the pool serves. A pool without replicas can't be asked for
	// them, and jobs must know that they can wait for it.
	Models []string `yaml:"models"`
	// Templates lists the deployment templates whose lines the pool serves: names, or
	// NAME@VERSION. A template that a pool lists is served by such pools alone. Default: none.
	Templates []string `yaml:"templates"`
	// Provider says who runs the replicas, in any word, for the provider_preference of profiles.
	// Empty: every profile may use the pool, after those that it prefers. Default: empty.
	Provider string `yaml:"provider"`
	// Role is shared if interactive requests come to the pool too, batch if it serves batch lines
	// alone. Flow control lets lines fill the engines of a batch pool. Default: shared.
	Role Role `yaml:"role"`
	// AllowImplicit serves models of the pool that no use case names to interactive requests too,
	// at the lowest class. Any tenant may then name any model that the engines have, LoRA adapters
	// among them. Default: false.
	AllowImplicit bool `yaml:"allow_implicit"`
	// Min is the minimum number of replicas. Default: 0.
	Min int `yaml:"min"`
	// Max is the maximum number of replicas. Required.
	Max int `yaml:"max"`
	// Price of a replica per hour, in any currency: only ratios between pools matter. Default: 0,
	// which is the same price for all.
	Price float64 `yaml:"price"`
	// Reclaim is the share of replicas that the provider reclaims in an hour, 0 to 1, for spot
	// instances. Default: 0.
	Reclaim float64 `yaml:"reclaim"`
	// ColdStart is the expected time of a start before any was measured. 0: 3m, a 70B
	// model on a warm node.
	ColdStart time.Duration `yaml:"cold_start"`
	// Fallback is a server elsewhere that answers what the pool has no place for, within a budget.
	// See docs/fallback.md. Default: none.
	Fallback Fallback `yaml:"fallback"`
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
func (p Pool) Validate() error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(format, args...))
	}
	if !poolName.MatchString(p.Name) {
		fault("name: is %q, must be 1 to 63 lower-case letters, digits and dashes", p.Name)
	}
	if len(p.Models) == 0 {
		fault("models: is empty; list the models that the pool serves, since a pool without " +
			"replicas can't be asked")
	}
	for i, m := range p.Models {
		if strings.TrimSpace(m) == "" {
			fault("models[%d]: is empty", i)
		}
	}
	if p.Role != "" && p.Role != RoleShared && p.Role != RoleBatch {
		fault("role: is %q, must be shared or batch", p.Role)
	}
	if p.Min < 0 || p.Max < 1 || p.Min > p.Max {
		fault("max: is %d and min %d; max must be at least 1, and min from 0 to max", p.Max, p.Min)
	}
	if !(p.Price >= 0) {
		fault("price: is %v, must not be negative", p.Price)
	}
	if !(p.Reclaim >= 0 && p.Reclaim <= 1) {
		fault("reclaim: is %v, must be from 0 to 1", p.Reclaim)
	}
	if p.ColdStart < 0 {
		fault("cold_start: is %v, must not be negative", p.ColdStart)
	}
	for _, err := range p.Fallback.validate(p.Models) {
		fault("fallback.%w", err)
	}
	return errors.Join(faults...)
}
