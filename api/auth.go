package api

import (
	"context"
	"net/http"
	"strings"
)

// Role is the set of permissions of a key.
type Role string

const (
	RoleViewer Role = "viewer" // may only read
	RoleUser   Role = "user"   // may read and change the tenant's own objects
	RoleAdmin  Role = "admin"  // a user who may also control the daemon
)

// principal identifies the sender of a request.
type principal struct {
	Tenant string
	Role   Role
}

// DefaultTenant owns all objects while no keys are configured, and the objects created with a key
// that has no tenant.
const DefaultTenant = "default"

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
		return principal{Tenant: DefaultTenant, Role: RoleAdmin}, nil, nil
	}
	key, ok := bearer(r.Header.Get("Authorization"))
	if !ok {
		return principal{}, nil, unauthorized("",
			"You didn't provide an API key. Send it in the Authorization header: 'Authorization: Bearer YOUR_KEY'.")
	}
	found, ok := keys.find(key)
	if !ok {
		return principal{}, nil, errWrongKey
	}
	if p := found.owner; p.Role == RoleViewer && r.Method != http.MethodGet &&
		r.Method != http.MethodHead {
		return principal{}, nil, &Error{
			Status: http.StatusForbidden, Type: invalidRequest, Code: "insufficient_permissions",
			Message: "This API key may only read; use one with the role user.",
		}
	}
	return found.owner, found.life, nil
}

var errWrongKey = unauthorized("invalid_api_key", "Incorrect API key provided.")

func unauthorized(code, message string) *Error {
	return &Error{Status: http.StatusUnauthorized, Type: invalidRequest, Code: code,
		Message: message}
}

// bearer returns the key of an Authorization header. The scheme is not case-sensitive.
func bearer(header string) (key string, ok bool) {
	scheme, key, _ := strings.Cut(header, " ")
	key = strings.TrimSpace(key)
	return key, strings.EqualFold(scheme, "Bearer") && key != ""
}
