package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/internal/suggest"
)

// Role is a part of the daemon's work. Processes that share a store can divide the work by roles.
type Role string

const (
	// RoleAPI serves users, notifies webhooks, and removes what has expired.
	RoleAPI Role = "api"
	// RoleDispatch reads the metrics of runners, sends lines, and decides for the pools that the
	// process leads.
	RoleDispatch Role = "dispatch"
	// RoleScale reports replicas to KEDA and, together with dispatch, holds the Lease of pools in
	// Kubernetes.
	RoleScale Role = "scale"
)

// AllRoles lists the roles.
var AllRoles = []Role{RoleAPI, RoleDispatch, RoleScale}

// Has reports whether the process has a role.
func (c Config) Has(r Role) bool { return slices.Contains(c.Roles, r) }

func validateRoles(roles []Role) error {
	var names []string
	for _, r := range AllRoles {
		names = append(names, string(r))
	}
	if len(roles) == 0 {
		return fmt.Errorf("roles is empty; list some of %s", strings.Join(names, ", "))
	}
	var faults []error
	for i, r := range roles {
		switch {
		case slices.Contains(roles[:i], r):
			faults = append(faults, fmt.Errorf("roles[%d]: %q is listed twice", i, r))
		case !slices.Contains(AllRoles, r):
			fault := fmt.Sprintf("roles[%d]: %q is no role; the roles are %s", i, r,
				strings.Join(names, ", "))
			if near := suggest.Nearest(string(r), names); near != "" {
				fault += fmt.Sprintf("; did you mean %s?", near)
			}
			faults = append(faults, errors.New(fault))
		}
	}
	return errors.Join(faults...)
}
