package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/tidefill/tidefill/store"
)

// Tenants sums up what tenants have stored.
type Tenants interface {
	Tenants(ctx context.Context) ([]store.TenantTotals, error)
}

type tenantObject struct {
	ID            string `json:"id"`
	Object        string `json:"object"`
	Batches       int    `json:"batches"`
	ActiveBatches int    `json:"active_batches"`
	Files         int    `json:"files"`
	Bytes         int64  `json:"bytes"`
	QuotaBytes    *int64 `json:"quota_bytes"` // null: no limit
}

// listTenants answers GET /v1/tenants.
func (s *Server) listTenants(w http.ResponseWriter, r *http.Request) error {
	if !s.isAdmin(r.Context()) {
		return &httpError{
			Status: http.StatusForbidden, Type: invalidRequest, Code: "insufficient_permissions",
			Message: "Only a key with the role admin may list tenants.",
		}
	}
	all, err := s.meta.Tenants(r.Context())
	if err != nil {
		return fmt.Errorf("list tenants: %w", err)
	}
	if s.keys.Load().Empty() { // nobody may act for another tenant than this one
		all = slices.DeleteFunc(all, func(t store.TenantTotals) bool {
			return t.Tenant != DefaultTenant
		})
	}
	slices.SortFunc(all, func(a, b store.TenantTotals) int {
		return cmp.Compare(a.Tenant, b.Tenant)
	})
	config := s.config()
	data := make([]tenantObject, len(all))
	for i, t := range all {
		data[i] = tenantObject{ID: t.Tenant, Object: "tenant", Batches: t.Batches,
			ActiveBatches: t.Active, Files: t.Files, Bytes: t.Bytes}
		if quota := config.quotaOf(t.Tenant); quota > 0 {
			data[i].QuotaBytes = &quota
		}
	}
	return writeJSON(w, struct {
		Object string         `json:"object"`
		Data   []tenantObject `json:"data"`
	}{"list", data})
}
