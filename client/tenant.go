package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Tenant is what a tenant has stored.
type Tenant struct {
	ID            string          `json:"id"`
	Batches       int             `json:"batches"`        // ended ones included
	ActiveBatches int             `json:"active_batches"` // those that have not ended
	Files         int             `json:"files"`
	Bytes         int64           `json:"bytes"`       // of files and of uploads that are not complete
	QuotaBytes    int64           `json:"quota_bytes"` // 0: no limit
	Raw           json.RawMessage `json:"-"`           // the object as received
}

// UnmarshalJSON implements json.Unmarshaler. It also sets Raw.
func (t *Tenant) UnmarshalJSON(raw []byte) error {
	type plain Tenant
	if err := json.Unmarshal(raw, (*plain)(t)); err != nil {
		return err
	}
	t.Raw = append(json.RawMessage(nil), raw...)
	return nil
}

// Tenants returns the tenants that have stored anything, by name. It needs a key of an admin.
func (c *Client) Tenants(ctx context.Context) ([]Tenant, error) {
	var page Page[Tenant]
	if err := c.call(ctx, request{method: http.MethodGet, path: "/v1/tenants"}, &page); err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	return page.Data, nil
}

// For returns a client that acts for a tenant with the key of an admin. It shares the connections
// of c.
func (c *Client) For(tenant string) *Client {
	other := *c
	other.tenant = tenant
	return &other
}
