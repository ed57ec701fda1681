package api

import (
	"context"
	"net/http"
	"strings"
)

// role is the set of permissions of a key.
type role string

const (
	roleViewer role = "viewer" // may only read
	roleUser   role = "user"   // may read and change the tenant's own objects
	roleAdmin  role = "admin"  // a user of every tenant; TenantHeader names which
)

// principal identifies the sender of a request.
type principal struct {
	Tenant string
	Role   role
	// Key is the beginning of the hash of the key, as the keys file has it. Empty: there are none.
	Key string
}

// DefaultTenant owns all objects while no keys are configured, and the objects created with a key
// that has no tenant.
const DefaultTenant = "default"

// TenantHeader names the tenant for which an admin's request acts: it sees and changes that
// tenant's objects, and creates objects that are the tenant's.
const TenantHeader = "Tidefill-Tenant"

type principalKey struct{}

func principalOf(ctx context.Context) principal {
	p, ok := ctx.Value(principalKey{}).(principal)
	if !ok {
		panic("api: request reached a handler without authentication")
	}
	return p
}

// tenantOf returns the tenant whose objects the request may see.
func tenantOf(ctx context.Context) string { return principalOf(ctx).Tenant }

// authenticate returns the sender of r. It checks the key alone, before any look-up, so that an
// answer 401 reveals nothing about the objects that exist.
func (s *Server) authenticate(r *http.Request) (principal, *keyLifetime, error) {
	keys := s.keys.Load()
	if keys.Empty() {
		owner, err := actFor(r, principal{Tenant: DefaultTenant, Role: roleUser})
		return owner, nil, err
	}
	key, ok := bearer(r.Header.Get("Authorization"))
	if !ok {
		return principal{}, nil, unauthorized("",
			"You didn't provide an API key. Send it in the Authorization header: 'Authorization: "+
				"Bearer YOUR_KEY'.")
	}
	found, ok := keys.find(key)
	if !ok {
		return principal{}, nil, errWrongKey
	}
	s.keyUses.note(found.hash, s.now())
	if p := found.owner; p.Role == roleViewer && r.Method != http.MethodGet &&
		r.Method != http.MethodHead {
		return principal{}, nil, &httpError{
			Status: http.StatusForbidden, Type: invalidRequest, Code: "insufficient_permissions",
			Message: "This API key may only read; use one with the role user.",
		}
	}
	owner, err := actFor(r, found.owner)
	owner.Key = found.name()
	return owner, found.life, err
}

// actFor returns the owner of a key as the tenant that the request names, which only an admin may
// choose.
func actFor(r *http.Request, owner principal) (principal, error) {
	named := r.Header.Values(TenantHeader)
	switch {
	case len(named) == 0, len(named) == 1 && named[0] == owner.Tenant:
		return owner, nil
	case owner.Role != roleAdmin:
		return principal{}, &httpError{
			Status: http.StatusForbidden, Type: invalidRequest, Code: "insufficient_permissions",
			Message: "Only a key with the role admin may act for another tenant; leave out the " +
				"header " + TenantHeader + ".",
		}
	case len(named) > 1:
		return principal{}, invalid("", "invalid_value", "The header %s occurs %d times.",
			TenantHeader, len(named))
	}
	if err := checkTenant(named[0]); err != nil {
		return principal{}, invalid("", "invalid_value", "Invalid header %s: %s is not the name "+
			"of a tenant.", TenantHeader, quoted(named[0]))
	}
	owner.Tenant = named[0]
	return owner, nil
}

var errWrongKey = unauthorized("invalid_api_key", "Incorrect API key provided.")

func unauthorized(code, message string) *httpError {
	return &httpError{Status: http.StatusUnauthorized, Type: invalidRequest, Code: code,
		Message: message}
}

// bearer returns the key of an Authorization header. The scheme is not case-sensitive.
func bearer(header string) (key string, ok bool) {
	scheme, key, _ := strings.Cut(header, " ")
	key = strings.TrimSpace(key)
	return key, strings.EqualFold(scheme, "Bearer") && key != ""
}
