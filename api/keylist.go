package api

import (
	"cmp"
	"encoding/hex"
	"net/http"
	"slices"
	"time"
)

// The sizes of a page of keys, as OpenAI's.
const (
	defaultKeyPage = 20
	maxKeyPage     = 100
)

// keyObject is a key as OpenAI shows the keys of administrators.
type keyObject struct {
	ID            string     `json:"id"`
	Object        string     `json:"object"`
	Name          *string    `json:"name"`
	RedactedValue string     `json:"redacted_value"`
	CreatedAt     *int64     `json:"created_at"`   // null: not known
	ExpiresAt     *int64     `json:"expires_at"`   // null
	LastUsedAt    *int64     `json:"last_used_at"` // null: never
	Owner         keyOwner   `json:"owner"`
	Tidefill      keyDetails `json:"tidefill"`
}

type keyOwner struct {
	Type   string `json:"type"`
	Object string `json:"object"`
	ID     string `json:"id"` // the tenant
	Name   string `json:"name"`
}

type keyDetails struct {
	Tenant string    `json:"tenant"`
	Role   role      `json:"role"`
	Source keySource `json:"source"`
}

// listKeys answers GET /v1/organization/admin_api_keys, in the order of creation.
func (s *Server) listKeys(w http.ResponseWriter, r *http.Request) error {
	if !s.isAdmin(r.Context()) {
		return &httpError{
			Status: http.StatusForbidden, Type: invalidRequest, Code: "insufficient_permissions",
			Message: "Only a key with the role admin may list keys.",
		}
	}
	query := r.URL.Query()
	limit, err := readLimit(query, defaultKeyPage, maxKeyPage)
	if err != nil {
		return err
	}
	ascending, err := readOrder(query)
	if err != nil {
		return err
	}
	keys := s.shownKeys(r, ascending || query.Get("order") == "")
	if after := query.Get("after"); after != "" {
		at := slices.IndexFunc(keys, func(e keyEntry) bool { return e.id() == after })
		if at < 0 {
			return invalid("after", "invalid_value", "Invalid 'after': %s is not the id of a key; "+
				"if it was removed meanwhile, list the keys again from the first.", quoted(after))
		}
		keys = keys[at+1:]
	}
	used, err := s.lastUses(r.Context())
	if err != nil {
		return err
	}
	list := newListWriter(w, func(k keyObject) string { return k.ID })
	for _, e := range keys[:min(limit, len(keys))] {
		if err := list.send(e.show(used[hex.EncodeToString(e.hash[:])])); err != nil {
			return err
		}
	}
	return list.end(len(keys) > limit)
}

// shownKeys returns the keys of all tenants, or of the one for which an admin's request acts, by
// their creation. Those of which it is not known are the oldest.
func (s *Server) shownKeys(r *http.Request, ascending bool) (keys []keyEntry) {
	if ring := s.keys.Load(); !ring.Empty() {
		keys = slices.Clone(ring.keys)
	}
	if len(r.Header.Values(TenantHeader)) > 0 {
		tenant := tenantOf(r.Context())
		keys = slices.DeleteFunc(keys, func(e keyEntry) bool { return e.owner.Tenant != tenant })
	}
	slices.SortFunc(keys, func(a, b keyEntry) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.id(), b.id()))
	})
	if !ascending {
		slices.Reverse(keys)
	}
	return keys
}

// id names the key in lists of keys.
func (e keyEntry) id() string { return "key_" + hex.EncodeToString(e.hash[:8]) }

// show returns the key with the time of its last use; zero: never.
func (e keyEntry) show(used time.Time) keyObject {
	return keyObject{
		ID: e.id(), Object: "organization.admin_api_key", Name: orNull(e.title),
		RedactedValue: e.name() + "…", CreatedAt: orNullTime(e.created),
		LastUsedAt: orNullTime(used),
		Owner: keyOwner{Type: "user", Object: "organization.user", ID: e.owner.Tenant,
			Name: e.owner.Tenant},
		Tidefill: keyDetails{Tenant: e.owner.Tenant, Role: e.owner.Role, Source: e.source},
	}
}
