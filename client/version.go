package client

import (
	"context"
	"net/http"
)

// Version is the release of a daemon.
type Version struct {
	Version string `json:"version"`
}

// Version returns the release of the daemon.
func (c *Client) Version(ctx context.Context) (v Version, err error) {
	err = c.call(ctx, request{method: http.MethodGet, path: "/version"}, &v)
	return v, err
}
