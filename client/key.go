package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// Key is an API key of the daemon.
type Key struct {
	ID            string `json:"id"`
	Name          string `json:"name"`           // empty: none
	RedactedValue string `json:"redacted_value"` // the beginning of its hash, and "…"
	CreatedAt     int64  `json:"created_at"`     // Unix seconds; 0: not known
	LastUsedAt    int64  `json:"last_used_at"`   // 0: never
	Tidefill      struct {
		Tenant string `json:"tenant"`
		Role   string `json:"role"`
		Source string `json:"source"` // keys_file or environment
	} `json:"tidefill"`
	Raw json.RawMessage `json:"-"` // the object as received
}

// UnmarshalJSON implements json.Unmarshaler. It also sets Raw.
func (k *Key) UnmarshalJSON(raw []byte) error {
	type plain Key
	if err := json.Unmarshal(raw, (*plain)(k)); err != nil {
		return err
	}
	k.Raw = append(json.RawMessage(nil), raw...)
	return nil
}

// Keys returns all keys, or those of the tenant for which the client acts, the oldest first. It
// needs a key of an admin.
func (c *Client) Keys(ctx context.Context) (keys []Key, err error) {
	list := func(ctx context.Context, query url.Values) (page Page[Key], err error) {
		err = c.call(ctx, request{method: http.MethodGet,
			path: "/v1/organization/admin_api_keys", query: query}, &page)
		return page, err
	}
	for k, err := range all(ctx, nil, 0, list, func(k Key) string { return k.ID }) {
		if err != nil {
			return nil, fmt.Errorf("list keys: %w", err)
		}
		keys = append(keys, k)
	}
	return keys, nil
}
