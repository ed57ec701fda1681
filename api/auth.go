package api

import (
	"context"
	"net/http"
	"strings"
)

// Role says what the holder of a key may do.
type Role string

const (
	RoleViewer Role = "viewer" // may only look
	RoleUser   Role = "user"   // may do everything with the tenant's own objects
	RoleAdmin  Role = "admin"  // a user who may also steer the daemon
)

// principal is who sent a request.
type principal struct {
	Tenant string
	Role   Role
}

// DefaultTenant owns everything while no keys are configured, and what comes with a key that names
// no tenant.
const DefaultTenant = "default"

type principalKey struct{}

func principalOf(ctx context.Context) principal {
	p, ok := ctx.Value(principalKey{}).(principal)
	if !ok {
		panic("api: a handler runs without its request having been authenticated")
	}
	return p
}

// tenantOf returns the tenant whose objects the request may see.
func tenantOf(ctx context.Context) string { return principalOf(ctx).Tenant }

// authenticate finds out who sent r. It looks at the key only, so an answer 401 tells nothing about
// what exists.
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

// bearer takes the key out of an Authorization header; the scheme's case does not matter.
func bearer(header string) (key string, ok bool) {
	scheme, key, _ := strings.Cut(header, " ")
	key = strings.TrimSpace(key)
	return key, strings.EqualFold(scheme, "Bearer") && key != ""
}
